package release

import (
	"runtime/debug"
	"testing"
)

func TestVersionFromTheLinker(t *testing.T) {
	defer func(linked string) { version = linked }(version)
	version = "1.2.3"
	if Version() != "1.2.3" || SoftwareName() != "dma-copy 1.2.3" {
		t.Errorf("%q, %q", Version(), SoftwareName())
	}
}

func TestVersionInAnotherProgram(t *testing.T) {
	own := debug.Module{Path: module, Version: "v1.2.3"}
	other := debug.Module{Path: "example.com/other", Version: "v9.9.9"}
	for _, test := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{Main: own, Deps: []*debug.Module{&other}}, "v1.2.3"},
		{debug.BuildInfo{Main: other, Deps: []*debug.Module{&own}}, "v1.2.3"},
		{debug.BuildInfo{Main: other}, unknown},
	} {
		if got := versionIn(&test.info); got != test.want {
			t.Errorf("%+v: %q, want %q", test.info, got, test.want)
		}
	}
}
