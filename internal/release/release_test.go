package release

import "testing"

func TestVersionFromTheLinker(t *testing.T) {
	defer func(linked string) { version = linked }(version)
	version = "1.2.3"
	if Version() != "1.2.3" || SoftwareName() != "dma-copy 1.2.3" {
		t.Errorf("%q, %q", Version(), SoftwareName())
	}
}
