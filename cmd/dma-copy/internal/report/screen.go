package report

import (
	"bytes"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Screen is a terminal whose last line can show how far a copy is. Whatever else is written to it goes above that line. Safe for
// concurrent use.
type Screen struct {
	out   io.Writer
	width func() int // columns of the window as it is now

	mu   sync.Mutex
	line string // what the last line shows; empty: nothing
}

const (
	eraseLine    = "\r\x1b[K"
	defaultWidth = 80
)

// NewScreen makes the screen of a terminal.
func NewScreen(terminal *os.File) *Screen {
	return &Screen{out: terminal, width: func() int {
		width, _, err := term.GetSize(int(terminal.Fd()))
		if err != nil || width <= 0 {
			return defaultWidth
		}
		return width
	}}
}

// Write implements io.Writer. The line comes back below what ends with a line's end.
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

// show replaces the last line; an empty one takes it away. That it cannot be shown stops no copy.
func (s *Screen) show(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line == s.line {
		return
	}
	s.line = line
	_, _ = io.WriteString(s.out, eraseLine+line)
}
