package comch_test

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// A caller that polls is told of messages, and gets them without a wait.
func TestPipePolling(t *testing.T) {
	one, other := comch.Pipe(100)
	if message, received := other.TryRecv(); received {
		t.Fatalf("received %q, which nobody sent", message)
	}
	select {
	case <-other.Arrived():
		t.Fatal("a message arrived that nobody sent")
	default:
	}
	for _, text := range []string{"first", "second"} {
		mustSend(t, one, []byte(text))
	}
	<-other.Arrived()
	for _, text := range []string{"first", "second"} {
		if message, received := other.TryRecv(); !received || string(message) != text {
			t.Fatalf("received %q (%t), want %q", message, received, text)
		}
	}
	mustSend(t, one, []byte("third"))
	mustClose(t, one)
	<-other.Arrived()
	if message, received := other.TryRecv(); !received || string(message) != "third" {
		t.Errorf("received %q (%t) after the peer left, want what it had sent before", message, received)
	}
	mustClose(t, other)
}
