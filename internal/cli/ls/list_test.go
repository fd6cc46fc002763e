package ls

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/report/reporttest"
	"github.com/dma-copy/dma-copy/internal/share"
)

// fullDisk is a writer that fails like a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// The fields of each event, which programs rely on: they are only ever added.
func TestEvents(t *testing.T) {
	var out bytes.Buffer
	l := newListing(&out, option.OutputJSON, false, zerolog.Nop())
	everyEntry(l)
	if err := l.end(); err != nil {
		t.Fatal(err)
	}
	err := reporttest.CheckGolden("../../../docs/events.schema.json", "testdata/events.golden", out.String())
	if err != nil {
		t.Error(err)
	}
}

// everyEntry lists an entry of each kind.
func everyEntry(l *listing) {
	l.Begin(report.Path{Software: "dma-copy VERSION", Peer: &report.Peer{Software: "dma-copy 1.0"}})
	l.at(share.Remote{Peer: "dpu"}, false)
	l.entry(share.Entry{Path: "in", Kind: wire.EntryDirectory, Mode: 0o600}, true)
	l.at(share.Remote{Peer: "dpu", Share: "in"}, true)
	at := disk.Timestamp{Sec: 1_000_000_000}
	l.entry(share.Entry{Path: "d", Kind: wire.EntryDirectory, Mode: 0o755, Modified: at}, false)
	l.entry(share.Entry{Path: "f\x1b", Kind: wire.EntryFile, Mode: 0o640, Size: 1234, Modified: at}, false)
	l.entry(share.Entry{Path: "l", Kind: wire.EntrySymlink, Mode: 0o777, Link: "f\n", Modified: at}, false)
}

func TestListingAsText(t *testing.T) {
	for long, want := range map[bool]string{
		false: "in:\ndpu:in:\nd/\nf\\x1b\nl\n",
		true: "rw  in:\ndpu:in:\n" +
			"drwxr-xr-x               -  2001-09-09 01:46:40  d/\n" +
			"-rw-r-----            1234  2001-09-09 01:46:40  f\\x1b\n" +
			"lrwxrwxrwx               -  2001-09-09 01:46:40  l -> f\\n\n",
	} {
		var out bytes.Buffer
		l := newListing(&out, option.OutputText, long, zerolog.Nop())
		everyEntry(l)
		if err := l.end(); err != nil || out.String() != want {
			t.Errorf("long %t: %v, printed\n%swant\n%s", long, err, out.String(), want)
		}
	}
}

func TestListingThatCannotBeWritten(t *testing.T) {
	for _, form := range []option.OutputForm{option.OutputText, option.OutputJSON} {
		l := newListing(fullDisk{}, form, false, zerolog.Nop())
		everyEntry(l)
		if err := l.end(); err == nil || !strings.HasPrefix(err.Error(), "print the list: ") {
			t.Errorf("%s: %v", form, err)
		}
	}
}
