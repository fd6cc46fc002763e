package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shellLoop reads commands from descriptor 3, so that those which read their standard input leave the next ones alone,
// and prints the exit code of each after a record separator. An interruption ends the command and not the shell.
const shellLoop = `trap : INT; while IFS= read -r line <&3; do eval "$line" 3<&-; printf '\036%d\n' $?; done`

const recordSeparator = '\x1e'

// shell is bash with the commands of a test; one goroutine at a time may run one.
type shell struct {
	command *exec.Cmd
	typed   *os.File
	output  *bufio.Reader
}

// startShell starts bash in a directory, and ends it with the test.
func startShell(t *testing.T, dir string, environment []string) *shell {
	t.Helper()
	read, typed, err := os.Pipe()
	must(t, err)
	defer read.Close()
	command := exec.Command("bash", "--norc", "-c", shellLoop)
	command.Dir, command.Env, command.ExtraFiles = dir, environment, []*os.File{read}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := command.StdoutPipe()
	must(t, err)
	command.Stderr = command.Stdout
	must(t, command.Start())
	t.Cleanup(func() {
		typed.Close()
		if t.Failed() { // a command may still run
			must(t, syscall.Kill(-command.Process.Pid, syscall.SIGKILL))
		}
		if err := command.Wait(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return &shell{command: command, typed: typed, output: bufio.NewReader(output)}
}

// run runs a line and returns its exit code and what it printed on stdout and stderr. It kills a shell whose command
// does not end.
func (s *shell) run(line string) (code int, output string, err error) {
	limit := time.AfterFunc(processTimeout, func() { _ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL) })
	defer limit.Stop()
	if _, err := fmt.Fprintln(s.typed, line); err != nil {
		return 0, "", err
	}
	output, err = s.output.ReadString(recordSeparator)
	if err != nil {
		return 0, output, fmt.Errorf("the shell has ended: %w", err)
	}
	_, err = fmt.Fscanln(s.output, &code)
	return code, strings.TrimSuffix(output, string(recordSeparator)), err
}

// interrupt sends what Ctrl-C sends.
func (s *shell) interrupt() error { return syscall.Kill(-s.command.Process.Pid, syscall.SIGINT) }
