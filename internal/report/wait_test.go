package report

import (
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A side that was given a word proposes a side with the same word.
func TestWordThere(t *testing.T) {
	for word, want := range map[string]string{
		"": "", "blue": " --with=blue", "-x": " --with=-x", "two words": " --with='two words'",
		"it's": ` --with='it'\''s'`, "a\nb": " --with=WORD",
	} {
		w := WaitForPeer(wire.DPU, "b1:00.1", "x", word, time.Second)
		if got := w.Start[0]; got != "dma-copy -p b1:00.1 -f x"+want {
			t.Errorf("%q: %q", word, got)
		}
	}
}

func TestFileThere(t *testing.T) {
	for file, want := range map[string]string{
		"": "FILE", "-": "FILE", ".": "FILE", "/": "FILE", "a/../..": "FILE", "a\nb": "FILE",
		"/home/x/image.bin": "image.bin", "photos/": "photos", "it's": `'it'\''s'`, "./-x": "./-x", "$(x)": "'$(x)'",
	} {
		if got := fileThere(file); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
}
