package main

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// streams is the program's surroundings, as a value so that tests can stand in for them.
type streams struct {
	stdout   io.Writer
	stderr   io.Writer
	terminal bool               // stderr is a terminal
	screen   *report.Screen     // of that terminal, if it can move its cursor; nil: no line is ever shown twice
	env      config.Environment // as os.LookupEnv
	closed   closedStreams
	data     dataStreams
}

// dataStreams opens what a FILE of "-" stands for. A nil function is not for this run.
type dataStreams struct {
	stdin, stdout func() (disk.File, error)
	nowhere       bool // neither of them leads anywhere but to a terminal
}

// The standard streams by descriptor.
var streamNames = [...]string{"standard input", "standard output", "standard error"}

// closedStreams are those of the standard streams that the process was started without.
type closedStreams [len(streamNames)]bool

func findClosedStreams() (closed closedStreams) {
	for fd := range closed {
		closed[fd] = doca.StreamClosedAtStart(fd)
	}
	return closed
}

// Check refuses what would write to a stream, or read from one, that is not there.
func (c closedStreams) Check(s config.Copy) error {
	const next = "connect it, for example to /dev/null"
	for fd, closed := range c {
		if closed && s.IsStream() {
			return exit.Usagef("-f - uses %s, and it is closed: %s", streamNames[fd], next)
		}
	}
	if c[1] && s.Output == config.OutputJSON {
		return exit.Usagef("-o json uses %s, and it is closed: %s", streamNames[1], next)
	}
	return nil
}

// closedFile is a standard output that is closed: what is printed to it is an error, as for every other program.
type closedFile struct{}

// Write implements io.Writer.
func (closedFile) Write([]byte) (int, error) { return 0, unix.EBADF }

func standardStreams() streams {
	s := streams{
		stdout: os.Stdout, stderr: os.Stderr, terminal: isTerminal(os.Stderr), env: os.LookupEnv, closed: findClosedStreams(),
	}
	if s.closed[1] {
		s.stdout = closedFile{}
	}
	if kind, _ := os.LookupEnv("TERM"); s.terminal && kind != "dumb" {
		s.screen = report.NewScreen(os.Stderr)
		s.stderr = s.screen
	}
	s.data = dataStreams{
		stdin:   unlessTerminal(os.Stdin, errKeyboard, disk.Stdin),
		stdout:  unlessInput(os.Stdin, unlessTerminal(os.Stdout, errScreen, disk.Stdout)),
		nowhere: isTerminal(os.Stdin) && isTerminal(os.Stdout),
	}
	return s
}

// Why a stream is not opened. Which of the two it would be depends on the other side, and whoever pipes something in may not expect
// that something comes out.
var (
	errKeyboard = errors.New("it is a terminal, and the other side has no file to send")
	errScreen   = errors.New("it is a terminal, and the other side has a file to send")
)

// unlessTerminal keeps a file's bytes away from the keyboard and the screen.
func unlessTerminal(handle *os.File, refusal error, open func() (disk.File, error)) func() (disk.File, error) {
	return func() (disk.File, error) {
		if isTerminal(handle) {
			return nil, refusal
		}
		return open()
	}
}

// unlessInput keeps whoever pipes something in from getting the other side's file in its place.
func unlessInput(input *os.File, open func() (disk.File, error)) func() (disk.File, error) {
	return func() (disk.File, error) {
		if !hasInput(input) {
			return open()
		}
		return nil, &dmaxfer.Error{
			Kind:  dmaxfer.ErrSource,
			Cause: "both sides have data to send (here: standard input)",
			Next: "use --overwrite on the other side if its file may be replaced, or remove it there; " +
				"to receive, redirect the input from /dev/null",
		}
	}
}

// hasInput tells whether a pipe or file has something to read by now. What a slow program will write into a pipe nobody can know.
func hasInput(input *os.File) bool {
	info, err := input.Stat()
	if err != nil {
		return false
	}
	if info.Mode().IsRegular() {
		offset, err := input.Seek(0, io.SeekCurrent)
		return err == nil && offset < info.Size()
	}
	waiting, err := unix.IoctlGetInt(int(input.Fd()), unix.TIOCINQ)
	return err == nil && waiting > 0
}

func isTerminal(handle *os.File) bool { return term.IsTerminal(int(handle.Fd())) }
