package contest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/dma-copy/dma-copy/lab/bench"
)

// servedTool is a tool that copies between machines: a server, and a client that connects to it.
type servedTool struct {
	server func(port int) child
	client func(port int) child
	ends   bool // the server by itself, when it has received everything

	// copyTime returns the seconds that the tool itself reports, from what the client wrote to stdout. It is nil if it
	// does not report any.
	copyTime func(output []byte, size int64) (float64, error)
}

// servedCopy is the candidate for a tool with a server, which is started before each run. Its start is not timed, its
// CPU time counts.
type servedCopy struct {
	task
	servedTool
	size    int64     // bytes of a run
	storing bool      // false: it moves bytes from memory to memory, and leaves no target
	after   [][]child // further stages of a run, such as sync

	server *process // nil: not started yet
	port   int
}

// Prepare starts the server and waits until it listens.
func (c *servedCopy) Prepare(ctx context.Context) error {
	if err := c.task.Prepare(ctx); err != nil {
		return err
	}
	return c.startServer(ctx)
}

func (c *servedCopy) startServer(ctx context.Context) error {
	var err error
	if c.port, err = freePort(); err != nil {
		return err
	}
	server, err := c.servedTool.server(c.port).start(ctx)
	if err != nil {
		return err
	}
	if err := waitForListener(ctx, c.port, server.pid()); err != nil {
		_, ended := stopServer(server) // before its stderr is read
		return errors.Join(server.failure(ctx, err), ended)
	}
	c.server = server
	return nil
}

func (c *servedCopy) Run(ctx context.Context) (bench.Run, error) {
	if c.server == nil { // the first copy of a repeatTask, which has no prepare
		if err := c.startServer(ctx); err != nil {
			return bench.Run{}, err
		}
	}
	server, client := c.server, c.client(c.port)
	c.server, client.stdout = nil, new(bytes.Buffer)
	began := time.Now()
	clientCPU, err := client.runAlone(ctx)
	var serverCPU float64
	if c.ends && err == nil {
		serverCPU, err = server.wait(ctx)
	}
	synced := bench.Run{}
	if err == nil {
		synced, _, err = runStages(ctx, c.after)
	}
	run := bench.Run{Seconds: time.Since(began).Seconds()}
	if server.command.ProcessState == nil {
		var ended error
		serverCPU, ended = stopServer(server)
		err = errors.Join(err, ended)
	}
	run.CPU = clientCPU + serverCPU + synced.CPU
	if c.copyTime != nil && err == nil {
		run.Copy, err = c.copyTime(client.stdout.Bytes(), c.size)
	}
	return run, err
}

// Check has nothing to compare if the tool stores nothing.
func (c *servedCopy) Check(ctx context.Context, thoroughly bool) error {
	if !c.storing {
		return nil
	}
	return c.task.Check(ctx, thoroughly)
}

// stopServer ends a server, whose exit code then means nothing, and returns its CPU time with that of its own children.
func stopServer(server *process) (cpu float64, err error) {
	kill := time.AfterFunc(drainTime, func() { _ = server.command.Process.Kill() })
	defer kill.Stop()
	if err := server.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	_ = server.command.Wait() // ended by the signal
	return server.cpuSeconds(), nil
}

func (c *servedCopy) commands() [][]string {
	const port = 0 // another one in each run
	return append([][]string{c.servedTool.server(port).argv, c.client(port).argv}, commandsOf(c.after)...)
}

// freePort returns a TCP port that nothing listens at.
func freePort() (int, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	defer listener.Close() // only its number is used
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// waitForListener waits until something listens at a port, without a connection, which some servers would take for
// that of the client. It gives up when the process has ended.
func waitForListener(ctx context.Context, port, process int) error {
	const step = 5 * time.Millisecond
	for deadline := time.Now().Add(meetingTime); time.Now().Before(deadline); {
		listening, err := isListening(port)
		if err != nil || listening {
			return err
		}
		if hasEnded(process) {
			return errors.New("ended before it listened")
		}
		select {
		case <-time.After(step):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("does not listen at port %d after %s", port, meetingTime)
}

// isListening looks for a listening TCP socket at a port.
func isListening(port int) (bool, error) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			return false, err
		}
		if listensIn(string(content), port) {
			return true, nil
		}
	}
	return false, nil
}

// listensIn looks for a listening socket in a table of the kernel: a line "0: LOCAL:PORT REMOTE:PORT STATE ...", all in
// hexadecimal digits.
func listensIn(table string, port int) bool {
	const listen = "0A"
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[3] == listen && strings.HasSuffix(fields[1], suffix) {
			return true
		}
	}
	return false
}

// hasEnded reports whether a child process has ended, without waiting for it.
func hasEnded(process int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return true
	}
	// The name of the program, in parentheses, may have spaces.
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return bytes.HasPrefix(state, []byte("Z"))
}
