// Package audit writes one JSON line for each session and request of a daemon: who did what, to which file, how much,
// and with which result. docs/audit.schema.json describes the lines.
//
// A service.Observer must not block, so a goroutine writes the lines, from a bounded queue. Lines that find the queue
// full, or cannot be written, are counted, and the number is the next line that is written. The package must not decide
// what is permitted.
package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The most that waits for the file. A line takes about 500 bytes, and one of a removal up to some 10 KiB.
const (
	queued      = 4096 // lines
	queuedBytes = 8 << 20
)

// Log is an audit log. It implements service.Observer, and its methods are safe for concurrent use.
type Log struct {
	path  string // empty: a stream that is not reopened
	now   func() time.Time
	log   zerolog.Logger // where the failures of the audit log itself are reported
	ended chan struct{}

	mu     sync.Mutex
	wake   sync.Cond // the queue or closed has changed
	queue  [][]byte
	bytes  int   // in the queue
	lost   int64 // lines that were not written since the last one that was
	closed bool

	file    sync.Mutex // guards what follows; never taken together with mu
	out     io.WriteCloser
	torn    bool // the last line is incomplete
	failing bool // the last line was not written; of writeLines alone
}

// Open opens the log file, which is created with mode 0600 if it does not exist, and appended to. It fails if path is
// not a regular file. Failures to write are reported to log, once until a line is written again.
func Open(path string, log zerolog.Logger) (*Log, error) {
	out, err := openFile(path)
	if err != nil {
		return nil, exit.Errorf(exit.Usage, "create its directory for this user, or name another file with --audit-log",
			"%w", err)
	}
	return start(path, out, log, time.Now), nil
}

// New returns a log that writes to a stream, such as stderr. Close does not close the stream.
func New(stream io.Writer, log zerolog.Logger) *Log {
	return start("", unclosed{stream}, log, time.Now)
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func openFile(path string) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_APPEND | os.O_CREATE | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	file, err := os.OpenFile(path, flags, 0o600)
	if err == nil {
		var info os.FileInfo
		if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is not a regular file")
		}
		if err != nil {
			_ = file.Close() // nothing was written
		}
	}
	if errors.Is(err, unix.ELOOP) {
		err = errors.New("it is a symlink")
	}
	if err != nil {
		return nil, fmt.Errorf("open the audit log %s: %w", quote.Bare(path), reason(err))
	}
	return file, nil
}

// reason is an error without the path, which the message has already.
func reason(err error) error {
	if at, is := errors.AsType[*os.PathError](err); is {
		return at.Err
	}
	return err
}

func start(path string, out io.WriteCloser, log zerolog.Logger, now func() time.Time) *Log {
	l := &Log{path: path, out: out, log: log, now: now, ended: make(chan struct{})}
	l.wake.L = &l.mu
	go l.writeLines()
	return l
}

// Reopen opens the file again by its name, after it was rotated. If that fails the log continues in the old file. It
// does nothing for a stream.
func (l *Log) Reopen() error {
	if l.path == "" {
		return nil
	}
	next, err := openFile(l.path)
	if err != nil {
		return err
	}
	l.file.Lock()
	old := l.out
	l.out, l.torn = next, false
	l.file.Unlock()
	return old.Close()
}

// Close writes the lines that are queued, and closes the file. Later calls of the Log do nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.wake.Signal()
	l.mu.Unlock()
	<-l.ended
	if !first {
		return nil
	}
	return l.out.Close()
}

// append queues a line.
func (l *Log) append(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
	case len(l.queue) == queued, l.bytes+len(line) > queuedBytes:
		l.lost++
	default:
		l.queue, l.bytes = append(l.queue, line), l.bytes+len(line)
		l.wake.Signal()
	}
}

func (l *Log) writeLines() {
	defer close(l.ended)
	for more := true; more; {
		var lines [][]byte
		var lost int64
		lines, lost, more = l.next()
		if lost > 0 && !l.write(l.lostLine(lost), lost+int64(len(lines))) {
			continue
		}
		for i, line := range lines {
			if !l.write(line, int64(len(lines)-i)) {
				break
			}
		}
	}
}

// next waits for lines and takes them. more is false when these are the last ones.
func (l *Log) next() (lines [][]byte, lost int64, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.wake.Wait()
	}
	lines, lost = l.queue, l.lost
	l.queue, l.bytes, l.lost = nil, 0, 0
	return lines, lost, !l.closed
}

// write writes one line with one call, so that another writer of the file does not get between its parts. If that fails
// it counts the lines as lost.
func (l *Log) write(line []byte, lost int64) bool {
	l.file.Lock()
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.out.Write(line)
	l.torn = err != nil && (n > 0 || l.torn)
	l.file.Unlock()
	if err != nil {
		l.mu.Lock()
		l.lost += lost
		l.mu.Unlock()
	}
	if err != nil && !l.failing {
		l.log.Error().Err(reason(err)).Msg("the audit log cannot be written: lines are lost until it can")
	}
	l.failing = err != nil
	return err == nil
}
