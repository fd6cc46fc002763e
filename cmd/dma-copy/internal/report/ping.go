package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// PingReporter reports on the round trips of one side, as text or as JSON lines. Its methods are called by one
// goroutine at a time.
type PingReporter interface {
	// Begin is called before the round trips start.
	Begin(path Path)

	// Event is called for each event.
	Event(e ping.Event)

	// Result reports the round trips. It returns an error if what was reported could not be written.
	Result(s ping.Summary) error

	// Fail is called with the error of round trips that failed.
	Fail(err error)
}

// NewPing returns the reporter that the settings ask for. It writes to stdout.
func NewPing(stdout io.Writer, s config.Ping, log zerolog.Logger) PingReporter {
	if s.Output == config.OutputJSON {
		return &pingEvents{eventWriter: newEventWriter(stdout, log)}
	}
	if s.Quiet {
		stdout = io.Discard
	}
	return &pingText{out: stdout}
}

// pingText writes round trips as text.
type pingText struct {
	out    io.Writer
	path   Path
	failed error // of the first line that could not be written; nothing is written any more
}

func (r *pingText) printf(format string, args ...any) {
	if r.failed == nil {
		_, r.failed = fmt.Fprintf(r.out, format, args...)
	}
}

func (r *pingText) Begin(path Path) { r.path = path }

func (r *pingText) Event(e ping.Event) {
	if said, is := e.(ping.Text); is && said.Text != "" {
		r.printf("%s says: %s\n", said.From, quote.Printable(said.Text))
	}
}

func (r *pingText) Result(s ping.Summary) error {
	r.printf("%s of %s: min %s, median %s, p99 %s, over %s\n", quantity.Count(int64(s.Count), "round trip"),
		quantity.Count(int64(s.Size), "byte"), micros(s.Min), micros(s.Median), micros(s.P99), pingPath(s))
	if r.path.Address != "" {
		r.printf("path  tls to %s (encrypted)\n", r.path.Address)
	} else {
		r.printf("path  %s\n", r.path.Driver)
	}
	if r.path.Peer != nil {
		r.printf("peer  %s%s\n", r.path.peerTitle(), r.path.Peer.claim())
	}
	if r.path.Reason != "" {
		r.printf("why   %s\n", quote.Printable(r.path.Reason))
	}
	return unwritten(r.failed)
}

// Fail does nothing: the program prints the error of a run.
func (r *pingText) Fail(error) {}

func micros(d time.Duration) string {
	return fmt.Sprintf("%.1f us", float64(d)/float64(time.Microsecond))
}

func pingPath(s ping.Summary) string {
	if s.Fast {
		return "producers and consumers"
	}
	return "the control channel"
}

func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the round trips are done, but not all of the output could be written: %w", err)
}

// The events of round trips, besides hello and error.
type (
	textEvent struct {
		eventHeader
		From string `json:"from"`
		Text string `json:"text"`
	}
	pingEvent struct {
		eventHeader
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

// pingEvents writes round trips as JSON lines.
type pingEvents struct {
	eventWriter
	path Path
}

func (r *pingEvents) Begin(path Path) { r.path = path }

func (r *pingEvents) Event(e ping.Event) {
	switch e := e.(type) {
	case ping.Connected:
		r.write(r.hello(r.path, "ping", e.Version, ""))
	case ping.Text:
		if e.Text != "" {
			r.write(textEvent{r.start("text"), roleOf(e.From), strings.ToValidUTF8(e.Text, "\uFFFD")})
		}
	}
}

func (r *pingEvents) Result(s ping.Summary) error {
	path := "control"
	if s.Fast {
		path = "fast"
	}
	r.write(pingEvent{
		eventHeader: r.start("ping"), RoundTrips: s.Count, Bytes: s.Size, Min: s.Min.Seconds(),
		Median: s.Median.Seconds(), P99: s.P99.Seconds(), DataPath: path,
		Driver: r.path.Driver, Hardware: r.path.Hardware,
	})
	return unwritten(r.failed)
}
