package root

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// Streams are the standard streams and the environment of the program, as a value that tests can replace.
type Streams struct {
	Stdin    io.Reader // for a list of paths
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal bool               // stderr is a terminal
	Screen   *output.Screen     // of that terminal; nil if it cannot move its cursor
	Env      option.Environment // as os.LookupEnv
	Environ  func() []string    // as os.Environ; nil: no variables
	Closed   ClosedStreams
	Data     DataStreams
	Local    DataStreams // the same in a local copy
}

// DataStreams opens what a FILE of "-" stands for.
type DataStreams struct {
	Stdin, Stdout func() (disk.File, error)
	Nowhere       bool // both are a terminal
}

// StreamNames are the standard streams by descriptor.
var StreamNames = [...]string{"standard input", "standard output", "standard error"}

// ClosedStreams says, by descriptor, which standard streams the process was started without.
type ClosedStreams [len(StreamNames)]bool

// closedFile is a standard output that is closed: writing to it fails, as for any other program.
type closedFile struct{}

func (closedFile) Write([]byte) (int, error) { return 0, unix.EBADF }

// StandardStreams returns the streams and the environment of the process.
func StandardStreams() Streams {
	s := Streams{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: isTerminal(os.Stderr), Env: os.LookupEnv,
		Environ: os.Environ,
	}
	for fd := range s.Closed {
		s.Closed[fd] = doca.StreamClosedAtStart(fd)
	}
	if s.Closed[1] {
		s.Stdout = closedFile{}
	}
	if kind, _ := os.LookupEnv("TERM"); s.Terminal && kind != "dumb" {
		s.Screen = output.NewScreen(os.Stderr)
		s.Stderr = s.Screen
	}
	s.Data = DataStreams{
		Stdin:   refuseIfTerminal(os.Stdin, errStdinIsTerminal, disk.Stdin),
		Stdout:  refuseIfInput(os.Stdin, refuseIfTerminal(os.Stdout, errStdoutIsTerminal, disk.Stdout)),
		Nowhere: isTerminal(os.Stdin) && isTerminal(os.Stdout),
	}
	s.Local = DataStreams{
		Stdin:  refuseIfTerminal(os.Stdin, errIsTerminal, disk.Stdin),
		Stdout: refuseIfTerminal(os.Stdout, errIsTerminal, disk.Stdout),
	}
	return s
}

// The reasons why a stream is not opened. Which of the two is used depends on the other side.
var (
	errStdinIsTerminal  = errors.New("it is a terminal, and the other side has no file to send")
	errStdoutIsTerminal = errors.New("it is a terminal, and the other side has a file to send")
	errIsTerminal       = errors.New("it is a terminal")
)

// refuseIfTerminal returns open, or a function that returns refusal if handle is a terminal: a file's bytes are neither
// typed in nor shown on a screen.
func refuseIfTerminal(handle *os.File, refusal error, open func() (disk.File, error)) func() (disk.File, error) {
	return func() (disk.File, error) {
		if isTerminal(handle) {
			return nil, refusal
		}
		return open()
	}
}

// refuseIfInput returns open, or a function that fails if input has data: a user who pipes data in must not receive the
// other side's file instead.
func refuseIfInput(input *os.File, open func() (disk.File, error)) func() (disk.File, error) {
	return func() (disk.File, error) {
		if !hasInput(input) {
			return open()
		}
		return nil, &job.Error{
			Kind:  job.ErrSource,
			Cause: "both sides have data to send (here: standard input)",
			Next: "use --overwrite on the other side if its file may be replaced, or remove it there; " +
				"to receive, redirect the input from /dev/null",
		}
	}
}

// hasInput reports whether a pipe or file has data to read now. It cannot foresee what a slow program will write.
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

// Asks reports whether the user can be asked: stdin is a terminal.
func (s Streams) Asks() bool {
	file, is := s.Stdin.(*os.File)
	return is && isTerminal(file)
}

func isTerminal(handle *os.File) bool { return term.IsTerminal(int(handle.Fd())) }

// Ask prints a question and reports whether the answer is yes. Until there is one it calls keepAlive, as the daemon
// does not wait for long for the next request.
func Ask(ctx context.Context, from io.Reader, to io.Writer, question string, keepAlive func() error) (bool, error) {
	answers := make(chan bool, 1)
	go func() {
		fmt.Fprintf(to, "dma-copy: %s [y/N] ", question)
		answer, _ := bufio.NewReader(from).ReadString('\n') // the end of the input is no answer
		answer = strings.ToLower(strings.TrimSpace(answer))
		answers <- answer == "y" || answer == "yes"
	}()
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case yes := <-answers:
			return yes, nil
		case <-ticker.C:
			if err := keepAlive(); err != nil {
				return false, err
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// WaitOutput returns how a command with one peer says that it waits.
func WaitOutput(s Streams, form option.OutputForm, quiet bool, log zerolog.Logger) output.WaitOutput {
	return output.NewWaitOutput(s.Stdout, s.Stderr, s.Screen, form, quiet, log)
}
