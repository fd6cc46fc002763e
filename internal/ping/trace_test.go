//go:build cgo

package ping

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// tracedLines returns the lines with a text, sorted and without session and states: messages of the two channels of the
// fast path may overtake each other.
func tracedLines(log *bytes.Buffer, text string) (lines []string) {
	for line := range strings.Lines(log.String()) {
		if before, _, traced := strings.Cut(line, `,"from":`); traced && strings.Contains(line, text) {
			_, message, _ := strings.Cut(before, `"protocol":`)
			lines = append(lines, message)
		}
	}
	slices.Sort(lines)
	return lines
}

// At level TRACE each message has one line on the side that sends it and one on the side that receives it, on either
// path.
func TestTraceHasEachMessage(t *testing.T) {
	for name, path := range map[string]job.PathChoice{"control": job.OnlyDMA, "fast": job.OnlyFast} {
		t.Run(name, func(t *testing.T) {
			var logs [2]bytes.Buffer
			p := newPair(t, "")
			for side := range p.options {
				p.options[side].Path, p.options[side].Count = path, 3
				p.options[side].Log = zerolog.New(zerolog.SyncWriter(&logs[side]))
			}
			for side, got := range p.runBoth(t.Context()) {
				if got.err != nil {
					t.Errorf("%s: %v", wire.Side(side), got.err)
				}
			}
			for side := range logs {
				sent := tracedLines(&logs[side], "message sent")
				received := tracedLines(&logs[1-side], "message received")
				if len(sent) < 8 || !slices.Equal(sent, received) {
					t.Errorf("%s has sent:\n%s\nreceived:\n%s", wire.Side(side),
						strings.Join(sent, "\n"), strings.Join(received, "\n"))
				}
			}
		})
	}
}
