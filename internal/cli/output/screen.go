package output

import (
	"bytes"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

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
