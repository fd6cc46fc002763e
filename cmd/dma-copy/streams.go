package main

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

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// streams are the standard streams and the environment of the program, as a value that tests can replace.
type streams struct {
	stdin    io.Reader // for a list of paths
	stdout   io.Writer
	stderr   io.Writer
	terminal bool               // stderr is a terminal
	screen   *output.Screen     // of that terminal; nil if it cannot move its cursor
	env      option.Environment // as os.LookupEnv
	environ  func() []string    // as os.Environ; nil: no variables
	closed   closedStreams
	data     dataStreams
	local    dataStreams // the same in a local copy
}

// dataStreams opens what a FILE of "-" stands for.
type dataStreams struct {
	stdin, stdout func() (disk.File, error)
	nowhere       bool // both are a terminal
}

// The standard streams by descriptor.
var streamNames = [...]string{"standard input", "standard output", "standard error"}

// closedStreams says, by descriptor, which standard streams the process was started without.
type closedStreams [len(streamNames)]bool

// streamUses names, by descriptor, the argument that stands for a stream in place of a file; empty: none does.
type streamUses [len(streamNames)]string

// oneStream returns the uses of an argument, which may be empty, that stands for the input or the output.
func oneStream(argument string, input bool) (uses streamUses) {
	fd := 1
	if input {
		fd = 0
	}
	uses[fd] = argument
	return uses
}

// check refuses settings that need a stream which is closed.
func (c closedStreams) check(s config.Copy, uses streamUses) error {
	for _, use := range []struct {
		argument string
		fd       int
		given    bool
	}{
		{uses[0], 0, uses[0] != ""}, {uses[1], 1, uses[1] != ""}, {uses[2], 2, uses[2] != ""},
		{"--files-from -", 0, s.FilesFrom == option.Stream}, {"-o json", 1, s.Output == option.OutputJSON},
		{"--dry-run", 1, s.DryRun},
	} {
		if use.given && c[use.fd] {
			return exit.Usagef("%s uses %s, and it is closed: connect it, for example to /dev/null", use.argument,
				streamNames[use.fd])
		}
	}
	return nil
}

// closedFile is a standard output that is closed: writing to it fails, as for any other program.
type closedFile struct{}

func (closedFile) Write([]byte) (int, error) { return 0, unix.EBADF }

func standardStreams() streams {
	s := streams{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, terminal: isTerminal(os.Stderr), env: os.LookupEnv,
		environ: os.Environ,
	}
	for fd := range s.closed {
		s.closed[fd] = doca.StreamClosedAtStart(fd)
	}
	if s.closed[1] {
		s.stdout = closedFile{}
	}
	if kind, _ := os.LookupEnv("TERM"); s.terminal && kind != "dumb" {
		s.screen = output.NewScreen(os.Stderr)
		s.stderr = s.screen
	}
	s.data = dataStreams{
		stdin:   refuseIfTerminal(os.Stdin, errStdinIsTerminal, disk.Stdin),
		stdout:  refuseIfInput(os.Stdin, refuseIfTerminal(os.Stdout, errStdoutIsTerminal, disk.Stdout)),
		nowhere: isTerminal(os.Stdin) && isTerminal(os.Stdout),
	}
	s.local = dataStreams{
		stdin:  refuseIfTerminal(os.Stdin, errIsTerminal, disk.Stdin),
		stdout: refuseIfTerminal(os.Stdout, errIsTerminal, disk.Stdout),
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

// asks reports whether the user can be asked: stdin is a terminal.
func (s streams) asks() bool {
	file, is := s.stdin.(*os.File)
	return is && isTerminal(file)
}

func isTerminal(handle *os.File) bool { return term.IsTerminal(int(handle.Fd())) }

// ask prints a question and reports whether the answer is yes. Until there is one it calls keepAlive, as the daemon
// does not wait for long for the next request.
func ask(ctx context.Context, from io.Reader, to io.Writer, question string, keepAlive func() error) (bool, error) {
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
