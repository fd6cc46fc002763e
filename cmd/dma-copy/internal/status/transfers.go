package status

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
)

// WriteTransfers prints one line for each running or waiting transfer of a daemon as of now, followed by what it waits
// for, or one line that says that there is none. Errors are ignored: the reader may be gone.
func WriteTransfers(w io.Writer, s service.Status, now time.Time) {
	var text strings.Builder
	for _, c := range connectionsOf(s.Connections, now) {
		if c.Request != nil && service.Operation(c.Request.Operation).Copies() {
			line := who(c.ID, c.Key, c.Function) + ": " + doing(c.Request) + timeLeft(c.Request)
			text.WriteString(quote.Printable(line) + "\n")
			for _, line := range waits(c.Request) {
				text.WriteString("  " + quote.Printable(line) + "\n")
			}
		}
	}
	if text.Len() == 0 {
		fmt.Fprintf(&text, "no transfers, %s\n", quantity.Count(len(s.Connections), "connection"))
	}
	_, _ = io.WriteString(w, text.String())
}

// timeLeft returns how long a transfer still takes at the rate that it has had, empty where that is not known.
func timeLeft(r *Request) string {
	if r.Waiting || r.Total == nil || r.Rate <= 0 || *r.Total <= r.Moved {
		return ""
	}
	return "  ETA " + quantity.Remaining(*r.Total-r.Moved, r.Rate)
}
