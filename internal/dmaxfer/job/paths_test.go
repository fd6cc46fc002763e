package job

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

var everyPath = []negotiate.Path{
	negotiate.PathDMA, negotiate.PathFast, negotiate.PathTLS, negotiate.PathMessages, negotiate.PathRMA,
	negotiate.PathTCP,
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
	only := map[negotiate.Path]PathChoice{
		negotiate.PathDMA: OnlyDMA, negotiate.PathFast: OnlyFast, negotiate.PathTLS: OnlyTLS,
		negotiate.PathMessages: OnlyMessages, negotiate.PathRMA: OnlyRMA, negotiate.PathTCP: OnlyTCP,
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
func TestFragile(t *testing.T) {
	for _, test := range []struct {
		paths   []negotiate.Path
		path    negotiate.Path
		fragile bool
	}{
		{[]negotiate.Path{negotiate.PathDMA, negotiate.PathFast}, negotiate.PathDMA, true},
		{[]negotiate.Path{negotiate.PathRMA, negotiate.PathTLS}, negotiate.PathRMA, true},
		{[]negotiate.Path{negotiate.PathRMA, negotiate.PathTCP}, negotiate.PathRMA, true},
		{[]negotiate.Path{negotiate.PathRMA, negotiate.PathMessages}, negotiate.PathRMA, true},
		{[]negotiate.Path{negotiate.PathTLS, negotiate.PathMessages}, 0, false},
		{[]negotiate.Path{negotiate.PathDMA, negotiate.PathTLS}, 0, false},
		{[]negotiate.Path{negotiate.PathRMA}, 0, false},
	} {
		path, fragile := PathsOf(test.paths...).Fragile()
		if path != test.path || fragile != test.fragile {
			t.Errorf("%v: %s, %t", test.paths, path, fragile)
		}
	}
}
