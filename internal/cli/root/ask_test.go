package root

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAsk(t *testing.T) {
	alive := func() error { return nil }
	for answer, want := range map[string]bool{
		"y\n": true, " YES \n": true, "yes": true, "n\n": false, "\n": false, "": false, "yesterday\n": false,
	} {
		var out strings.Builder
		yes, err := Ask(t.Context(), strings.NewReader(answer), &out, "remove it?", alive)
		if yes != want || err != nil || out.String() != "dma-copy: remove it? [y/N] " {
			t.Errorf("%q: %t, %v, asked %q", answer, yes, err, out.String())
		}
	}
	silent, end := io.Pipe()
	defer end.Close()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if yes, err := Ask(ctx, silent, io.Discard, "remove it?", alive); yes || !errors.Is(err, stopped) {
		t.Errorf("without an answer: %t, %v", yes, err)
	}
}
