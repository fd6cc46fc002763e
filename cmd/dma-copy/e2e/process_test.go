package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// processTimeout ends a process that does not end by itself. No test passes because of it. It is many times what
	// the longest copy takes, for machines that are busy with other work.
	processTimeout = 5 * time.Minute

	// daemonTimeout is the same for a daemon, which serves many commands.
	daemonTimeout = time.Hour

	unprivilegedID = 65534 // user and group "nobody" on every Linux
)

// process is one run of a program, with what it has printed so far.
type process struct {
	name    string
	command *exec.Cmd
	stdout  outputBuffer
	stderr  outputBuffer  // without what is logged only for a failed test
	log     *logSplitter  // what fills stderr
	done    chan struct{} // closed when the process has been waited for; waitErr is valid from then on
	waitErr error
}

// processOptions says what to start and how.
type processOptions struct {
	name         string // for messages
	dir          string
	environment  []string
	unprivileged bool // as user nobody, if the test runs as root
	argv         []string
	closed       closedOutputs
	stderr       *os.File      // replaces what collects it; nil: none
	timeout      time.Duration // 0: processTimeout
	terminal     *os.File      // that the process controls, in a session of its own; nil: none
}

// closedOutputs are the standard streams whose reader is gone before the process starts.
type closedOutputs struct{ stdout, stderr bool }

// startProcess starts a process. It prints its goroutines and ends if it lives too long.
func startProcess(o processOptions) (*process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(o.timeout, processTimeout))
	argv, environment, hidden := debugLogOf(o)
	p := &process{name: o.name, done: make(chan struct{})}
	p.log = newLogSplitter(&p.stderr, hidden)
	p.command = exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.command.Dir, p.command.Env = o.dir, environment
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGQUIT) }
	p.command.WaitDelay = 30 * time.Second
	if err := p.run(o); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(p.done)
		defer cancel()
		p.waitErr = p.command.Wait()
		p.log.end()
	}()
	return p, nil
}

func (p *process) run(o processOptions) error {
	brokenPipe, err := pipeWithoutReader()
	if err != nil {
		return err
	}
	defer brokenPipe.Close()
	p.command.Stdout, p.command.Stderr = &p.stdout, p.log
	if o.stderr != nil {
		p.command.Stderr = o.stderr
	}
	if o.closed.stdout {
		p.command.Stdout = brokenPipe
	}
	if o.closed.stderr {
		p.command.Stderr = brokenPipe
	}
	if o.terminal != nil {
		p.command.Stdin, p.command.SysProcAttr = o.terminal, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	if o.unprivileged && os.Geteuid() == 0 {
		if err := p.dropPrivileges(); err != nil {
			return err
		}
	}
	return p.command.Start()
}

// pipeWithoutReader returns the writing end of a pipe whose other end is closed.
func pipeWithoutReader() (*os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return writer, reader.Close()
}

// dropPrivileges runs the process as user nobody, with a runtime directory that belongs to that user. Directories that
// only their owner may enter are opened on the way to the program and to its working directory.
func (p *process) dropPrivileges() error {
	runtime, err := os.MkdirTemp(p.command.Dir, runtimeDir)
	if err != nil {
		return err
	}
	program, err := exec.LookPath("dma-copy") // argv may name another program that starts it
	if err != nil {
		return err
	}
	p.command.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: unprivilegedID, Gid: unprivilegedID},
	}
	// A program that measures coverage has to write it somewhere, or it would print an error.
	p.command.Env = append(p.command.Env, "DMA_COPY_SOFT_DIR="+runtime, "GOCOVERDIR="+runtime)
	return errors.Join(
		os.Chown(runtime, unprivilegedID, unprivilegedID), makeReachable(program), makeReachable(p.command.Dir))
}

// makeReachable lets every user enter the temporary directories that a path leads through.
func makeReachable(path string) error {
	for dir := filepath.Dir(path); dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the process, even a stopped one, and waits for its end.
func (p *process) kill() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.done
}

func (p *process) signal(s syscall.Signal) error { return p.command.Process.Signal(s) }

func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// waitForStderr waits until what the process has printed on stderr matches the pattern.
func (p *process) waitForStderr(pattern *regexp.Regexp) error { return p.waitFor(&p.stderr, pattern) }

// waitForStdout waits until what the process has printed on stdout matches the pattern.
func (p *process) waitForStdout(pattern *regexp.Regexp) error { return p.waitFor(&p.stdout, pattern) }

// waitFor waits until what the process has printed on one of its streams matches the pattern.
func (p *process) waitFor(stream *outputBuffer, pattern *regexp.Regexp) error {
	for {
		changed := stream.changed()
		if pattern.MatchString(stream.String()) {
			return nil
		}
		select {
		case <-changed:
		case <-p.done:
			if pattern.MatchString(stream.String()) {
				return nil
			}
			return fmt.Errorf("%s ended (%v) without printing %q:\n%s",
				p.name, p.command.ProcessState, pattern, stream.String())
		}
	}
}

// askUntil asks the process what it waits for until what it has printed on one of its streams matches the pattern. On a
// busy machine a copy may not answer in time, or have come less far, and between two requests there is nothing to say.
func (p *process) askUntil(stream *outputBuffer, pattern *regexp.Regexp) error {
	for !pattern.MatchString(stream.String()) && !p.hasEnded() {
		_ = p.signal(syscall.SIGUSR1) // it may have ended
		time.Sleep(10 * time.Millisecond)
	}
	return p.waitFor(stream, pattern)
}

// exitCode waits for the process and returns its exit code as a shell reports it.
func (p *process) exitCode() int {
	<-p.done
	if status := p.command.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return p.command.ProcessState.ExitCode()
}

// checkExit waits for the process and checks its exit code and the form of its output.
func (p *process) checkExit(code int, wantWarning bool) error {
	<-p.done
	if p.waitErr != nil && !errors.As(p.waitErr, new(*exec.ExitError)) {
		return fmt.Errorf("%s: %w", p.name, p.waitErr)
	}
	if got := p.exitCode(); got != code {
		return fmt.Errorf("%s: exit code %d, want %d; stderr:\n%s", p.name, got, code, p.stderr.String())
	}
	if err := checkStderr(p.stderr.String(), code, wantWarning); err != nil {
		return fmt.Errorf("%s: %w; stderr:\n%s", p.name, err, p.stderr.String())
	}
	return checkEvents(p.stdout.String()+p.stderr.String(), code)
}

var (
	// progressLine matches the lines that a transfer prints before its outcome is known.
	progressLine = regexp.MustCompile(`^(waiting for the \w+ \(|comparing .* that the target has|` +
		`\d+%  |\d+/\d+\+ entries  |[0-9.]+ (\wi?)?B(  |$))`)

	// waitLine matches the lines after a SIGUSR1 about what a transfer or a request waits for.
	waitLine = regexp.MustCompile(`^(the command waits |` +
		`  (the \w+ (waits|has|is|does) |slots: |messages: |entry \d|\.\.\. and \d))`)

	// peerLine matches the lines of push --to about each peer and all of them, which come before its outcome.
	peerLine = regexp.MustCompile(`^((ok|fail|plan|run)  +\S+: |\d+/\d+ peers  |total \d+ peers?\b)`)

	// raceWarning is printed by the race detector's runtime where /proc is not mounted.
	raceWarning = regexp.MustCompile(`^==\d+==WARNING: reading executable name failed `)
)

// checkStderr checks what holds for every run: a failure prints exactly one line, unless only some entries failed, a
// success prints no error, and no unexpected warning is logged. Log lines that the test has asked for do not count.
func checkStderr(stderr string, code int, wantWarning bool) error {
	var errorLines, otherLines, warnings int
	for line := range strings.Lines(stderr) {
		switch {
		case strings.Contains(line, `"message":"stalled: `): // before a timeout, which is an error of its own
		case strings.HasPrefix(line, `{"level":"warn"`), strings.HasPrefix(line, `{"level":"error"`):
			warnings++
		case strings.HasPrefix(line, "{"), progressLine.MatchString(line), waitLine.MatchString(line),
			peerLine.MatchString(line), raceWarning.MatchString(line):
		case strings.HasPrefix(line, "dma-copy: "), strings.HasPrefix(line, "refpeer: "):
			errorLines++
		default:
			otherLines++
		}
	}
	switch {
	case wantWarning != (warnings > 0):
		return fmt.Errorf("%d warnings, expected: %t", warnings, wantWarning)
	case code == exitOK && errorLines > 0:
		return errors.New("a successful run printed an error")
	case code == exitSomeFailed && errorLines == 0:
		return errors.New("a failure printed no error")
	case code != exitOK && code != exitKilled && code != exitSomeFailed && (errorLines != 1 || otherLines != 0):
		return errors.New("a failure is not exactly one line")
	}
	return nil
}

// outputBuffer collects the output of a running process. It is safe for concurrent use.
type outputBuffer struct {
	mu     sync.Mutex
	text   strings.Builder
	change chan struct{} // closed by the next Write; nil if nothing waits for it
}

func (b *outputBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.change != nil {
		close(b.change)
		b.change = nil
	}
	return b.text.Write(p)
}

func (b *outputBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// changed returns a channel that the next Write closes.
func (b *outputBuffer) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.change == nil {
		b.change = make(chan struct{})
	}
	return b.change
}
