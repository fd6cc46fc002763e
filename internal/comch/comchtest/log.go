package comchtest

import (
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// loggedLines is how many lines of the log of a side a failed test prints.
const loggedLines = 60

// LogOnFailure returns the logger of a side. The test prints its last lines, at DEBUG, if it fails.
func LogOnFailure(t testing.TB, side string) zerolog.Logger {
	l := &lastLines{}
	t.Cleanup(func() {
		if lines, before := l.taken(); t.Failed() && len(lines) > 0 {
			t.Logf("log of the %s, after %d other lines:\n%s", side, before, strings.Join(lines, ""))
		}
	})
	return zerolog.New(l).Level(zerolog.DebugLevel)
}

// lastLines keeps the last lines of a log, also of goroutines that log after the test has ended.
type lastLines struct {
	mu    sync.Mutex
	lines []string
	count int
}

// Write implements io.Writer. zerolog writes each line at once.
func (l *lastLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == loggedLines {
		l.lines = l.lines[1:]
	}
	l.lines, l.count = append(l.lines, string(line)), l.count+1
	return len(line), nil
}

// taken returns the lines, and how many there were before them.
func (l *lastLines) taken() (lines []string, before int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines, l.count - len(l.lines)
}
