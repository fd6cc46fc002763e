package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
)

// TestOptionsOfAFleet expects all copies to have the same limiter, and the filter and list that were read once.
func TestOptionsOfAFleet(t *testing.T) {
	limiter, filter := sharedLimiter(1000), &tree.Filter{}
	p := &peersPush{
		settings: &Settings{}, limiter: limiter,
		selected: dmaxfer.Options{Options: role.Options{Filter: filter, FilesFrom: []string{"a"}}},
	}
	p.settings.Options.Bandwidth = 1000
	for range 2 {
		o := p.options(&connect.Conn{Side: &connect.Side{}}, p.settings, zerolog.Nop())
		if o.Bandwidth != 0 || len(o.Limiters) != 1 || o.Limiters[0] != limiter {
			t.Errorf("bandwidth %d, limiters %v", o.Bandwidth, o.Limiters)
		}
		if o.Filter != filter || len(o.FilesFrom) != 1 || o.Placement != nil {
			t.Errorf("filter %v, paths %q, placement %v", o.Filter, o.FilesFrom, o.Placement)
		}
	}
}

// TestSourceOfAFleetChanges writes to one of two sources after the first peer has been tried. A directory may change.
func TestSourceOfAFleetChanges(t *testing.T) {
	dir := t.TempDir()
	file, changing := filepath.Join(dir, "file"), filepath.Join(dir, "changing")
	for _, name := range []string{file, changing} {
		if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &Settings{Local: []string{file, dir, changing}}
	s.IdleTimeout = time.Minute
	sources, err := findSources(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	p := &peersPush{settings: s, sources: sources}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.unchanged(); err != nil {
		t.Errorf("nothing has changed: %v", err)
	}
	if err := os.WriteFile(changing, []byte("longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.unchanged(); !errors.Is(err, job.ErrSourceChanged) {
		t.Errorf("a source has changed: %v", err)
	}
	s.Options.AllowChanging = true
	if err := p.unchanged(); err != nil {
		t.Errorf("the source may change: %v", err)
	}
	s.Local = append(s.Local, filepath.Join(dir, "missing"))
	if _, err := findSources(t.Context(), s); !errors.Is(err, job.ErrSource) {
		t.Errorf("a source is missing: %v", err)
	}
}
