package output

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

const (
	// memory is the time constant of the average rate: long enough not to flicker, short enough not to lag.
	memory = 3 * time.Second

	narrowestBar = 8
	widestBar    = 40
)

// speed averages how fast a copy moves.
type speed struct {
	last job.Sample
	rate float64 // bytes per second
}

// update adds a sample and returns the average rate in bytes per second, 0 if there is none yet.
func (v *speed) update(s job.Sample) float64 {
	passed := s.Elapsed - v.last.Elapsed
	if s.Elapsed == 0 || passed <= 0 {
		return v.rate
	}
	now := float64(s.Moved-v.last.Moved) / passed.Seconds()
	fresh := 1 - math.Exp(-passed.Seconds()/memory.Seconds())
	// In the first seconds this is the mean over all of the copy.
	v.rate += (now - v.rate) * max(fresh, passed.Seconds()/s.Elapsed.Seconds())
	v.last = s
	return v.rate
}

// progressLine returns the progress of a copy in at most width columns. Width 0 is no limit, and no bar.
func progressLine(s job.Sample, rate float64, width int) string {
	head, text := percentOf(s), strings.Join(progressFields(s, rate), "  ")
	for _, tail := range []string{doing(s), busiest(s), ""} {
		line := phrase.Join("  ", text, tail)
		room := width - len("100%") - len(line) - len(" [] ")
		switch {
		case width == 0:
			return phrase.Join("  ", head, line)
		case room >= narrowestBar && head != "":
			return fmt.Sprintf("%4s [%s] %s", head, bar(s, min(room, widestBar)), line)
		case head == "" && len(line) <= width:
			return line
		}
	}
	return whatFits(append([]string{head}, progressFields(s, rate)...), width)
}

// whatFits joins as many of the parts as fit into width. No part is cut: half a number would be another number.
func whatFits(parts []string, width int) string {
	for n := len(parts); n > 0; n-- {
		if line := phrase.Join("  ", parts[:n]...); len(line) <= width {
			return line
		}
	}
	return ""
}

// percentOf returns the percentage done, or nothing as long as the total is unknown.
func percentOf(s job.Sample) string {
	if totalOf(s) == nil {
		return ""
	}
	return fmt.Sprintf("%d%%", int(100*fraction(s)))
}

// totalOf returns the number of bytes to copy, or nil if that is unknown: of a stream, and of a tree before all of it
// was found.
func totalOf(s job.Sample) *int64 {
	switch {
	case s.FilesFound == 0:
		return known(s.Total)
	case s.Walked:
		return &s.Found
	default:
		return nil
	}
}

// fraction returns which part of the bytes has been copied, or of the entries if they have no bytes.
func fraction(s job.Sample) float64 {
	done, total := s.Moved, *totalOf(s)
	if total == 0 {
		done, total = s.Files, s.FilesFound
	}
	if total <= 0 {
		return 1
	}
	return min(1, float64(done)/float64(total))
}

func progressFields(s job.Sample, rate float64) []string {
	fields := amounts(s)
	if s.Phase != job.Moving || rate <= 0 {
		return fields
	}
	fields = append(fields, quantity.Bytes(uint64(rate))+"/s")
	if total := totalOf(s); total != nil {
		fields = append(fields, "ETA "+quantity.Remaining(*total-s.Moved, rate))
	}
	return fields
}

// amounts returns what is done of what there is to do. For a tree a plus sign follows what is found so far, until that
// is all.
func amounts(s job.Sample) []string {
	moved := quantity.Bytes(uint64(s.Moved))
	if s.FilesFound == 0 {
		if s.Total != job.Unknown {
			moved += "/" + quantity.Bytes(uint64(s.Total))
		}
		return []string{moved}
	}
	more := "+"
	if s.Walked {
		more = ""
	}
	return []string{
		fmt.Sprintf("%d/%d%s entries", s.Files, s.FilesFound, more),
		fmt.Sprintf("%s/%s%s", moved, quantity.Bytes(uint64(s.Found)), more),
	}
}

// doing names what takes the time.
func doing(s job.Sample) string {
	switch {
	case s.Phase == job.Preparing:
		return "preallocating"
	case s.Phase == job.Finishing && s.FilesFound == 0 && s.Work > s.Total && s.Total != job.Unknown:
		return "reading back"
	case s.Phase == job.Finishing:
		return "flushing"
	case s.Phase == job.Concluding:
		return "waiting for the peer"
	}
	return shares(s.Shares)
}

// shares lists the stages with at least 0.5 % of the time.
func shares(all pump.Shares) string {
	var parts []string
	for stage, share := range all {
		if share >= 0.005 {
			parts = append(parts, percentage(pump.Stage(stage), share))
		}
	}
	return strings.Join(parts, " ")
}

// busiest names the stage that limits the copy, or what is done while no bytes move.
func busiest(s job.Sample) string {
	stage := s.Shares.Busiest()
	if s.Phase != job.Moving || s.Shares[stage] == 0 {
		return doing(s)
	}
	return percentage(stage, s.Shares[stage])
}

func percentage(stage pump.Stage, share float64) string {
	return fmt.Sprintf("%s %.0f%%", stage, 100*share)
}

func bar(s job.Sample, width int) string {
	done := int(fraction(s) * float64(width))
	if done == width {
		return strings.Repeat("=", width)
	}
	return strings.Repeat("=", done) + ">" + strings.Repeat(" ", width-done-1)
}

// Screen is a terminal whose last line shows the progress of a copy. Other output goes above that line. Safe for
// concurrent use.
type Screen struct {
	out   io.Writer
	width func() int // columns of the window now

	mu   sync.Mutex
	line string // what the last line shows; empty: nothing
}

const (
	eraseLine    = "\r\x1b[K"
	defaultWidth = 80
)

// NewScreen returns the screen of a terminal.
func NewScreen(terminal *os.File) *Screen {
	return &Screen{out: terminal, width: func() int {
		width, _, err := term.GetSize(int(terminal.Fd()))
		if err != nil || width <= 0 {
			return defaultWidth
		}
		return width
	}}
}

// Write implements io.Writer. If p ends with a newline, the last line is shown again below it.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return s.out.Write(p)
	}
	text := append([]byte(eraseLine), p...)
	if bytes.HasSuffix(p, []byte("\n")) {
		text = append(text, s.line...)
	} else {
		s.line = ""
	}
	if _, err := s.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// show replaces the last line; an empty one removes it. Errors are ignored: they must not stop a copy.
func (s *Screen) show(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line == s.line {
		return
	}
	s.line = line
	_, _ = io.WriteString(s.out, eraseLine+line)
}
