// Package daemon runs the program for tests of what watches its daemon: the real metrics, and the status page.
package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	moduleRoot = "../.." // of the tests that use this package
	timeout    = time.Minute
)

// Daemon is a running dma-copy serve on a loopback address, with a share "files", and a key for commands.
type Daemon struct {
	// URL is that of its metrics, without a path.
	URL string

	t       *testing.T
	program string
	dir     string
	address string // of the service
	process *exec.Cmd
	output  *lines
	stop    func()
}

// Start builds the program, and starts a daemon that ends with the test. flags are further ones of serve.
func Start(t *testing.T, flags ...string) *Daemon {
	t.Helper()
	d := &Daemon{t: t, dir: t.TempDir(), output: newLines()}
	d.program = filepath.Join(d.dir, "dma-copy")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", d.program, "./cmd/dma-copy")
	build.Dir = moduleRoot
	run(t, build)
	for _, side := range []string{"daemon", "command"} {
		d.Run("keys", "new", "--keys", d.path(side+".keys"))
	}
	d.trust("daemon", "laptop", "command")
	d.trust("command", "daemon", "daemon")
	if err := os.Mkdir(d.path("files"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.serve(flags)
	return d
}

func (d *Daemon) path(name string) string { return filepath.Join(d.dir, name) }

// Share returns the path of a file in the share.
func (d *Daemon) Share(name string) string { return d.path(filepath.Join("files", name)) }

// publicKey is how the output of dma-copy keys show has a public key.
var publicKey = regexp.MustCompile(`dma-copy-v1:\S+`)

// trust makes a side trust the key of another one by a name.
func (d *Daemon) trust(side, name, of string) {
	d.t.Helper()
	key := publicKey.FindString(d.Run("keys", "show", "--keys", d.path(of+".keys")))
	d.Run("keys", "trust", name, key, "--keys", d.path(side+".keys"))
}

// serve starts the daemon on two free ports, and waits until it is ready.
func (d *Daemon) serve(flags []string) {
	d.t.Helper()
	d.address = freeAddress(d.t)
	metrics := freeAddress(d.t)
	d.URL = "http://" + metrics
	d.process = exec.Command(d.program, append([]string{
		"serve", "--listen", d.address, "--share", "files=" + d.path("files") + ",rw", "--keys", d.path("daemon.keys"),
		"--runtime-dir", d.path("run"), "--metrics", metrics,
	}, flags...)...)
	d.process.Stdout, d.process.Stderr = d.output, d.output
	if err := d.process.Start(); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.process.Wait() // it is killed
	}()
	d.stop = sync.OnceFunc(func() {
		_ = d.process.Process.Signal(syscall.SIGKILL) // it may have ended
		<-ended
	})
	d.t.Cleanup(d.stop)
	select {
	case <-d.output.ready:
	case <-ended:
		d.t.Fatalf("the daemon has ended:\n%s", d.output)
	case <-time.After(timeout):
		d.t.Fatalf("the daemon is not ready:\n%s", d.output)
	}
}

// Kill ends the daemon at once.
func (d *Daemon) Kill() { d.stop() }

// Run runs the program to its successful end, and returns its standard output.
func (d *Daemon) Run(arguments ...string) string {
	d.t.Helper()
	return run(d.t, exec.CommandContext(d.t.Context(), d.program, arguments...))
}

// Command starts a command that reaches the daemon, and ends with the test. The result is its end.
func (d *Daemon) Command(name string, arguments ...string) <-chan error {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	arguments = append([]string{name, "--keys", d.path("command.keys")}, arguments...)
	command := exec.CommandContext(ctx, d.program, arguments...)
	command.Dir = d.dir
	if err := command.Start(); err != nil {
		d.t.Fatal(err)
	}
	end := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { end <- command.Wait() })
	d.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return end
}

// Remote returns the URL of a path in the share.
func (d *Daemon) Remote(path string) string { return "ucx://" + d.address + "/files/" + path }

// Get returns what the daemon answers at a path of URL.
func (d *Daemon) Get(path string) string {
	d.t.Helper()
	response, err := http.Get(d.URL + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: %s %s: %v", path, response.Status, text, err)
	}
	return string(text)
}

func run(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	var failure bytes.Buffer
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, &failure)
	}
	return string(output)
}

// freeAddress returns a loopback address with a port that was free just now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// lines keeps the output of a daemon, and says when a line of it begins with "ready".
type lines struct {
	ready chan struct{}

	mu    sync.Mutex
	text  strings.Builder
	found bool
}

func newLines() *lines { return &lines{ready: make(chan struct{})} }

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(text)
	if !l.found && strings.Contains("\n"+l.text.String(), "\nready ") {
		l.found = true
		close(l.ready)
	}
	return len(text), nil
}

// String returns the output until now.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var _ fmt.Stringer = (*lines)(nil)
