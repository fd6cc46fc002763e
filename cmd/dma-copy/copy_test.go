package main

import (
	"reflect"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Each flag about trees sets its own option of the transfer, and no other.
func TestOptionsOfTrees(t *testing.T) {
	for line, want := range map[string]func(*dmaxfer.Options){
		"--links copy":           func(*dmaxfer.Options) {},
		"--links follow":         func(o *dmaxfer.Options) { o.Links = tree.LinksFollow },
		"--links skip":           func(o *dmaxfer.Options) { o.Links = tree.LinksSkip },
		"--preserve links":       func(o *dmaxfer.Options) { o.HardLinks = true },
		"--preserve owner,xattr": func(o *dmaxfer.Options) { o.Owner, o.Xattrs = true, true },
		"--checksum":             func(o *dmaxfer.Options) { o.Checksum = true },
		"--dry-run":              func(o *dmaxfer.Options) { o.DryRun = true },
		"--fail-fast":            func(o *dmaxfer.Options) { o.FailFast = true },
		"--if-same error":        func(o *dmaxfer.Options) { o.RefuseSame = true },
		"--if-same skip":         func(*dmaxfer.Options) {},
		"--max-entries 7":        func(o *dmaxfer.Options) { o.MaxEntries = 7 },
		"--events all":           func(*dmaxfer.Options) {},
	} {
		got, expected := optionsOf(t, "-f x "+line), optionsOf(t, "-f x")
		want(&expected)
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("%s:\n got %+v\nwant %+v", line, got, expected)
		}
	}
}

// optionsOf returns the options of a transfer for a command line.
func optionsOf(t *testing.T, line string) dmaxfer.Options {
	t.Helper()
	s := mustRun(t, nil, words(line)...)
	return copying.Options(s, nil, wire.Host, root.DataStreams{}, zerolog.Nop())
}
