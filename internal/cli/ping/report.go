package ping

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
)

// reporter reports on the round trips of one side, as text or as JSON lines. Its methods are called by one
// goroutine at a time.
type reporter struct {
	events *output.Events // nil: as text
	text   io.Writer      // discards where there are events
	failed error          // of the first line of text that could not be written; no text is written any more
	path   report.Path
}

// newReporter returns the reporter of a form, which writes to stdout; quiet says that there is no text.
func newReporter(stdout io.Writer, form option.OutputForm, quiet bool, log zerolog.Logger) *reporter {
	r := &reporter{events: output.NewEvents(stdout, form, log), text: stdout}
	if quiet || r.events != nil {
		r.text = io.Discard
	}
	return r
}

func (r *reporter) printf(format string, args ...any) {
	if r.failed == nil {
		_, r.failed = fmt.Fprintf(r.text, format, args...)
	}
}

// Begin is called before the round trips start.
func (r *reporter) Begin(path report.Path) { r.path = path }

// The events of round trips, besides hello and error.
type (
	textEvent struct {
		From string `json:"from"`
		Text string `json:"text"`
	}
	pingEvent struct {
		RoundTrips int     `json:"round_trips"`
		Bytes      int     `json:"bytes"`
		Min        float64 `json:"min_seconds"`
		Median     float64 `json:"median_seconds"`
		P99        float64 `json:"p99_seconds"`
		DataPath   string  `json:"data_path"`
		Driver     string  `json:"driver"`
		Hardware   bool    `json:"hardware"`
	}
)

// Event is called for each event.
func (r *reporter) Event(e ping.Event) {
	switch e := e.(type) {
	case ping.Connected:
		r.events.Hello(r.path, "ping", e.Version, "")
	case ping.Text:
		if e.Text != "" {
			r.events.Write("text", textEvent{report.RoleOf(e.From), strings.ToValidUTF8(e.Text, "\uFFFD")})
			r.printf("%s says: %s\n", e.From, quote.Printable(e.Text))
		}
	}
}

// Result reports the round trips. It returns an error if what was reported could not be written.
func (r *reporter) Result(s ping.Summary) error {
	path, over := "control", "the control channel"
	if s.Fast {
		path, over = "fast", "producers and consumers"
	}
	r.events.Write("ping", pingEvent{
		RoundTrips: s.Count, Bytes: s.Size, Min: s.Min.Seconds(), Median: s.Median.Seconds(), P99: s.P99.Seconds(),
		DataPath: path, Driver: r.path.Driver, Hardware: r.path.Hardware,
	})
	r.printf("%s of %s: min %s, median %s, p99 %s, over %s\n", quantity.Count(int64(s.Count), "round trip"),
		quantity.Count(int64(s.Size), "byte"), micros(s.Min), micros(s.Median), micros(s.P99), over)
	if r.path.Address != "" {
		r.printf("path  tls to %s (encrypted)\n", r.path.Address)
	} else {
		r.printf("path  %s\n", r.path.Driver)
	}
	r.printf("%s", r.path.End())
	const unwritten = "the round trips are done, but not all of the output could be written"
	if r.failed != nil {
		return fmt.Errorf("%s: %w", unwritten, r.failed)
	}
	return r.events.Unwritten(unwritten)
}

// Fail is called with the error of round trips that failed. As text, the program prints it.
func (r *reporter) Fail(err error) { r.events.Fail(err) }

func micros(d time.Duration) string {
	return fmt.Sprintf("%.1f us", float64(d)/float64(time.Microsecond))
}
