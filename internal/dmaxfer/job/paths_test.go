package job

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

var everyPath = []wire.Path{
	wire.PathDMA, wire.PathFast, wire.PathTLS, wire.PathMessages, wire.PathRMA,
	wire.PathTCP,
}

func TestPaths(t *testing.T) {
	if EveryPath != PathsOf(everyPath...) {
		t.Errorf("EveryPath is %b, want %b", EveryPath, PathsOf(everyPath...))
	}
	for _, path := range everyPath {
		if !EveryPath.Has(path) || EveryPath.Without(path).Has(path) || PathsOf(path).Without(path) != 0 {
			t.Errorf("%s: %b", path, EveryPath.Without(path))
		}
	}
}

func TestPermits(t *testing.T) {
	only := map[wire.Path]PathChoice{
		wire.PathDMA: OnlyDMA, wire.PathFast: OnlyFast, wire.PathTLS: OnlyTLS,
		wire.PathMessages: OnlyMessages, wire.PathRMA: OnlyRMA, wire.PathTCP: OnlyTCP,
	}
	for _, path := range everyPath {
		if !AnyPath.Permits(path) {
			t.Errorf("AnyPath does not permit %s", path)
		}
		for of, choice := range only {
			if choice.Permits(path) != (of == path) {
				t.Errorf("the choice of %s permits %s: %t", of, path, choice.Permits(path))
			}
		}
	}
}

// Only a path whose window may not be within reach is left, and only for one of the same kind of connection.
func TestMayFallBack(t *testing.T) {
	for _, test := range []struct {
		paths       []wire.Path
		path        wire.Path
		mayFallBack bool
	}{
		{[]wire.Path{wire.PathDMA, wire.PathFast}, wire.PathDMA, true},
		{[]wire.Path{wire.PathRMA, wire.PathTLS}, wire.PathRMA, true},
		{[]wire.Path{wire.PathRMA, wire.PathTCP}, wire.PathRMA, true},
		{[]wire.Path{wire.PathRMA, wire.PathMessages}, wire.PathRMA, true},
		{[]wire.Path{wire.PathTLS, wire.PathMessages}, 0, false},
		{[]wire.Path{wire.PathDMA, wire.PathTLS}, 0, false},
		{[]wire.Path{wire.PathRMA}, 0, false},
	} {
		path, mayFallBack := PathsOf(test.paths...).MayFallBack()
		if path != test.path || mayFallBack != test.mayFallBack {
			t.Errorf("%v: %s, %t", test.paths, path, mayFallBack)
		}
	}
}

// A peer learns of every set of paths from the flags of the HELLO.
func TestFlagsOfPaths(t *testing.T) {
	for _, path := range everyPath {
		for _, p := range []Paths{0, PathsOf(path), EveryPath.Without(path), EveryPath} {
			if got := PathsIn(p.Flags() | native.FlagTree); got != p {
				t.Errorf("%s arrives as %s", p, got)
			}
		}
	}
}
