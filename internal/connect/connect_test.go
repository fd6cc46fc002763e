package connect

import (
	"strings"
	"testing"
)

func TestNameForPeers(t *testing.T) {
	long := strings.Repeat("n", 65)
	for name, want := range map[string]string{
		"dpu-7.example": "dpu-7.example", long: "", long[1:]: long[1:], "b\u00e4r": "", "a\nb": "", "": "",
	} {
		if got := nameForPeers(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
