package sshstart

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// The bounds of what is kept of stderr.
const (
	maxMessages = 20
	maxMessage  = 1 << 10 // bytes of a line
)

// messages takes the stderr of ssh, which also has the stderr of the far side: it is printed line by line, without
// control characters, and kept back until it is known whether it becomes part of an error.
type messages struct {
	mu      sync.Mutex
	to      io.Writer // nil: lines are kept
	kept    []string
	partial []byte // of a line
}

// Write implements io.Writer. It never fails: ssh is not to be stopped by a reader of stderr that has gone.
func (m *messages) Write(text []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for rest := text; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		m.partial = append(m.partial, line[:min(len(line), maxMessage-len(m.partial))]...)
		if whole {
			m.line()
		}
		rest = after
	}
	return len(text), nil
}

// line prints or keeps the line that has ended.
func (m *messages) line() {
	text := quote.Printable(strings.TrimRight(string(m.partial), "\r "))
	m.partial = m.partial[:0]
	switch {
	case text == "":
	case m.to != nil:
		_, _ = io.WriteString(m.to, text+"\n")
	default:
		m.kept = append(m.kept[max(0, len(m.kept)+1-maxMessages):], text)
	}
}

// pass prints what was kept, and from now on every line.
func (m *messages) pass(to io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, text := range m.kept {
		_, _ = io.WriteString(to, text+"\n")
	}
	m.to, m.kept = to, nil
}

// last prints what was kept, except for its last line, which it returns.
func (m *messages) last(to io.Writer) string {
	m.mu.Lock()
	if len(m.partial) > 0 {
		m.line()
	}
	text := ""
	if end := len(m.kept) - 1; end >= 0 {
		text, m.kept = m.kept[end], m.kept[:end]
	}
	m.mu.Unlock()
	m.pass(to)
	return text
}
