package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// hangGuard ends a process that does not end by itself. No test passes because of it.
	hangGuard = 90 * time.Second

	// runtimeFolder is where the software devices of one test meet.
	runtimeFolder = ".run"

	nobody = 65534 // user and group without rights, on every Linux
)

// process is one run of a program, with what it has printed so far.
type process struct {
	name    string
	command *exec.Cmd
	stdout  transcript
	stderr  transcript
	ended   chan struct{} // closed when it has been waited for; ending is valid from then on
	ending  error
}

// launching is what a process is started with.
type launching struct {
	name         string // for messages
	folder       string
	environment  []string
	unprivileged bool // as nobody, if the test runs as root
	argv         []string
	unread       []string // "stdout", "stderr": streams whose other end is closed
}

// launch starts a process that lives at most for hangGuard; then it prints its goroutines and dies.
func launch(l launching) (*process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), hangGuard)
	p := &process{name: l.name, ended: make(chan struct{})}
	p.command = exec.CommandContext(ctx, l.argv[0], l.argv[1:]...)
	p.command.Dir, p.command.Env = l.folder, l.environment
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	for _, name := range l.unread {
		closed, err := pipeWithoutReader()
		if err != nil {
			cancel()
			return nil, err
		}
		defer closed.Close()
		*map[string]*io.Writer{"stdout": &p.command.Stdout, "stderr": &p.command.Stderr}[name] = closed
	}
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGQUIT) }
	p.command.WaitDelay = 5 * time.Second
	if l.unprivileged && os.Geteuid() == 0 {
		if err := p.dropPrivileges(); err != nil {
			cancel()
			return nil, err
		}
	}
	if err := p.command.Start(); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(p.ended)
		defer cancel()
		p.ending = p.command.Wait()
	}()
	return p, nil
}

// pipeWithoutReader returns the end of a pipe to write to, whose other end is closed.
func pipeWithoutReader() (*os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return writer, reader.Close()
}

// dropPrivileges makes the process nobody's, with a runtime directory that is nobody's too. The folders that only their
// owner may enter are opened on the way to the program and to where it works.
func (p *process) dropPrivileges() error {
	runtime, err := os.MkdirTemp(p.command.Dir, runtimeFolder)
	if err != nil {
		return err
	}
	program, err := exec.LookPath("dma-copy") // which another program may start
	if err != nil {
		return err
	}
	p.command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	p.command.Env = append(p.command.Env, "DMA_COPY_SOFT_DIR="+runtime)
	return errors.Join(os.Chown(runtime, nobody, nobody), openWay(program), openWay(p.command.Dir))
}

func openWay(path string) error {
	for folder := filepath.Dir(path); folder != filepath.Clean(os.TempDir()) && folder != "/"; folder = filepath.Dir(folder) {
		if err := os.Chmod(folder, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the process, even a stopped one, and waits for that.
func (p *process) kill() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
}

func (p *process) signal(s syscall.Signal) error { return p.command.Process.Signal(s) }

// says waits until the process has printed something on stderr that matches.
func (p *process) says(pattern *regexp.Regexp) error {
	for {
		grown := p.stderr.growth()
		if pattern.MatchString(p.stderr.String()) {
			return nil
		}
		select {
		case <-grown:
		case <-p.ended:
			if pattern.MatchString(p.stderr.String()) {
				return nil
			}
			return fmt.Errorf("%s ended (%v) and never said %q:\n%s", p.name, p.command.ProcessState, pattern, p.stderr.String())
		}
	}
}

// endsWith waits for the process and checks its exit code and the manner in which it told of success or failure.
func (p *process) endsWith(code int, warned bool) error {
	<-p.ended
	if p.ending != nil && !errors.As(p.ending, new(*exec.ExitError)) {
		return fmt.Errorf("%s: %w", p.name, p.ending)
	}
	if got := exitCodeOf(p.command.ProcessState); got != code {
		return fmt.Errorf("%s: exit code %d, want %d; it said\n%s", p.name, got, code, p.stderr.String())
	}
	if err := checkManners(p.stderr.String(), code, warned); err != nil {
		return fmt.Errorf("%s: %w; it said\n%s", p.name, err, p.stderr.String())
	}
	return checkEvents(p.stdout.String()+p.stderr.String(), code)
}

// exitCodeOf is the exit code as a shell has it.
func exitCodeOf(state *os.ProcessState) int {
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// onTheWay is what a copy says before it is known how it ends.
var onTheWay = regexp.MustCompile(`^(resuming at \d+ %|\d+%  |[0-9.]+ \wi?B(  |$))`)

// raceRuntime is what the race detector's runtime says where /proc is not mounted.
var raceRuntime = regexp.MustCompile(`^==\d+==WARNING: reading executable name failed `)

// checkManners holds every run to what all promise: a failure is one line, a success none, and no warning comes
// unexpected. Log lines that a test has asked for do not count.
func checkManners(stderr string, code int, warned bool) error {
	var failures, others, warnings int
	for line := range strings.Lines(stderr) {
		switch {
		case strings.HasPrefix(line, `{"level":"warn"`), strings.HasPrefix(line, `{"level":"error"`):
			warnings++
		case strings.HasPrefix(line, "{"), onTheWay.MatchString(line), raceRuntime.MatchString(line):
		case strings.HasPrefix(line, "dma-copy: "), strings.HasPrefix(line, "refpeer: "):
			failures++
		default:
			others++
		}
	}
	switch {
	case warned != (warnings > 0):
		return fmt.Errorf("%d warnings, expected: %t", warnings, warned)
	case code == 0 && failures > 0:
		return errors.New("a success that speaks of a failure")
	case code != 0 && code != 128+int(syscall.SIGKILL) && (failures != 1 || others != 0):
		return errors.New("a failure is not exactly one line")
	}
	return nil
}

// transcript is the output of a running process. Safe for concurrent use.
type transcript struct {
	mu    sync.Mutex
	text  strings.Builder
	grown chan struct{} // closed by the next Write; nil if nobody waits
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.grown != nil {
		close(t.grown)
		t.grown = nil
	}
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// growth returns a channel that the next Write closes.
func (t *transcript) growth() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.grown == nil {
		t.grown = make(chan struct{})
	}
	return t.grown
}
