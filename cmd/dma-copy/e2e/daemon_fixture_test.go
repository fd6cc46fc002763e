package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/daemon/status"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
)

// daemonFixture is a fixture with a daemon on one side and commands on the other, which trust each other's keys. The
// share "files" is the directory "share" of the daemon's side.
type daemonFixture struct {
	*fixture
	serves   string // the side of the daemon
	address  string // at which it serves other machines; empty: it serves the other side of a device
	dataPath string // of UCX, which both sides use; empty: they choose
}

// transport returns the flags for how a side reaches the other one: the daemon's, or those of a command.
func (f *daemonFixture) transport(side string) string {
	switch {
	case f.address == "":
		return serviceDevices[side]
	case side == f.serves:
		return "--listen " + f.address + " "
	default:
		return "--json peers.json "
	}
}

// The devices of the two sides, as the service's commands name them.
var serviceDevices = map[string]string{"host": "-p b1:00.1 ", "dpu": "-p 03:00.1 -r b1:00.1 "}

func newDaemonFixture(t *testing.T, serves string) *daemonFixture {
	t.Helper()
	f := &daemonFixture{fixture: newFixture(t), serves: serves}
	must(t, os.Mkdir(f.share(), 0o755))
	f.trust("dpu", f.createKey("host"))
	f.trust("host", f.createKey("dpu"))
	return f
}

// forEachServingSide runs a test with a daemon on the DPU, with one on the host, and with one on another machine.
func forEachServingSide(t *testing.T, test func(f *daemonFixture)) {
	t.Helper()
	t.Run("daemon_on_another_machine", func(t *testing.T) {
		t.Parallel()
		test(newNetworkFixture(t))
	})
	for _, serves := range bothSides {
		t.Run("daemon_on_"+serves, func(t *testing.T) {
			t.Parallel()
			test(newDaemonFixture(t, serves))
		})
	}
}

// commands returns the side of the commands.
func (f *daemonFixture) commands() string { return peerOf(f.serves) }

// share returns the path of something in the share.
func (f *daemonFixture) share(elements ...string) string {
	return filepath.Join(append([]string{f.dir, f.serves, "share"}, elements...)...)
}

// local returns the path of something on the side of the commands.
func (f *daemonFixture) local(elements ...string) string {
	return filepath.Join(append([]string{f.dir, f.commands()}, elements...)...)
}

// createKey makes a key, in a directory with that name beside the files of its side.
func (f *daemonFixture) createKey(name string) identity.Public {
	f.t.Helper()
	key, err := identity.Generate()
	must(f.t, err)
	must(f.t, f.keys(name).SaveKey(key))
	return key.Public()
}

func (f *daemonFixture) keys(name string) *identity.Store {
	f.t.Helper()
	store, err := identity.OpenStore(filepath.Join(f.dir, name+".keys"))
	must(f.t, err)
	return store
}

// trust makes a key trusted in the directory of another one.
func (f *daemonFixture) trust(name string, key identity.Public) {
	f.t.Helper()
	must(f.t, f.keys(name).Trust(identity.Grant{Name: "peer", Key: key}, true))
}

// daemon is a running daemon.
type daemon struct {
	side
	fixture *daemonFixture
}

var logReady = regexp.MustCompile(`(?m)^ready `)

// serve starts a daemon with the share, and waits until it is ready.
func (f *daemonFixture) serve(flags string) daemon {
	f.t.Helper()
	return f.serveWith("--share files=" + f.serves + "/share,rw " + flags)
}

// serveWith starts a daemon with the shares that the flags name, and waits until it is ready.
func (f *daemonFixture) serveWith(flags string) daemon {
	f.t.Helper()
	return f.serveAs(processOptions{}, flags)
}

// serveAs is serveWith with more options of the process, but for its name and timeout.
func (f *daemonFixture) serveAs(o processOptions, flags string) daemon {
	f.t.Helper()
	o.name, o.timeout = "daemon", daemonTimeout
	line := fmt.Sprintf("dma-copy serve %s--keys %[2]s.keys --runtime-dir %[2]s/run --metrics unix:%[2]s/metrics %s",
		f.transport(f.serves), f.serves, flags)
	d := daemon{f.startWith(o, line), f}
	d.waitForLog(logReady)
	return d
}

// command starts a command of the service: its name and its arguments.
func (f *daemonFixture) command(line string) side {
	f.t.Helper()
	return f.commandWithKey(f.commands(), line)
}

func (f *daemonFixture) commandWithKey(key, line string) side {
	f.t.Helper()
	return f.commandWith(processOptions{}, key, line)
}

// commandWith is commandWithKey with more options of the process, but for its name.
func (f *daemonFixture) commandWith(o processOptions, key, line string) side {
	f.t.Helper()
	name, arguments, _ := strings.Cut(line, " ")
	o.name = name
	line = fmt.Sprintf("dma-copy %s %s--keys %s.keys %s", name, f.transport(f.commands()), key, arguments)
	return f.startWith(o, line)
}

// commandWithFullPipe starts a command whose stderr is a pipe of one page, and returns when it has printed a line with
// a prefix. Then it does not go on beyond what fits into the pipe until rest is called, which returns what else it
// prints.
func (f *daemonFixture) commandWithFullPipe(line, prefix string) (command side, rest func() string) {
	f.t.Helper()
	reader, writer, err := os.Pipe()
	must(f.t, err)
	f.t.Cleanup(func() { _ = reader.Close() })
	_, err = unix.FcntlInt(writer.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
	must(f.t, err)
	command = f.commandWith(processOptions{stderr: writer}, f.commands(), line)
	must(f.t, writer.Close())
	printed := bufio.NewReader(reader)
	for {
		text, err := printed.ReadString('\n')
		if err != nil {
			f.t.Fatalf("%s has ended with %q: %v", command.name, text, err)
		}
		if strings.HasPrefix(text, prefix) {
			break
		}
	}
	return command, func() string {
		f.t.Helper()
		text, err := io.ReadAll(printed)
		must(f.t, err)
		return string(text)
	}
}

// expectCommand runs a command that has to succeed.
func (f *daemonFixture) expectCommand(line string) side {
	f.t.Helper()
	s := f.command(line)
	s.expectExit(exitOK)
	return s
}

// stop ends the daemon, and expects that it leaves nothing.
func (d daemon) stop() {
	d.t.Helper()
	must(d.t, d.signal(syscall.SIGTERM))
	d.expectEnd()
	d.fixture.expectNothingLeft()
}

// expectEnd expects the daemon to end as one that was told to. Its log may have warnings of peers that were refused.
func (d daemon) expectEnd() {
	d.t.Helper()
	d.expectExitIn(exitOK)
	if text := d.stderr.String(); strings.Contains(text, `"level":"error"`) || strings.Contains(text, "panic: ") ||
		strings.Contains(text, "ERROR: ") { // of the metrics' library
		d.t.Errorf("the daemon has logged an error:\n%s", text)
	}
}

// daemonStatus is what the tests need of docs/status.schema.json.
type daemonStatus struct {
	Draining    bool
	Pending     int `json:"pending_connections"`
	Connections []struct {
		Request *struct {
			Path  string
			Moved int64 `json:"moved_bytes"`
		} `json:"request"`
	} `json:"connections"`
	Running int                                                        `json:"running_transfers"`
	Waiting int                                                        `json:"waiting_transfers"`
	Memory  int64                                                      `json:"memory_bytes"`
	Totals  struct{ Connections, Refused, Requests, Failed, Bugs int } `json:"totals"`
}

func (s daemonStatus) idle() bool {
	return s.Pending == 0 && len(s.Connections) == 0 && s.Running == 0 && s.Waiting == 0 && s.Memory == 0
}

// status returns what dma-copy status -o json prints, without a process for each look.
func (d daemon) status() (found daemonStatus) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), processTimeout)
	defer cancel()
	run, err := os.Open(filepath.Join(d.fixture.dir, d.fixture.serves, "run"))
	must(d.t, err)
	defer run.Close()
	socket := fmt.Sprintf("/proc/self/fd/%d/status.sock", run.Fd()) // for which its path may be too long
	document, err := status.Fetch(ctx, socket)
	if err != nil {
		d.t.Fatalf("no status: %v; stderr of the daemon:\n%s", err, d.stderr.String())
	}
	var text bytes.Buffer
	must(d.t, status.WriteJSON(&text, document))
	must(d.t, json.Unmarshal(text.Bytes(), &found))
	return found
}

// waitUntilIdle waits until the daemon has neither connections nor requests, nor memory for them.
func (d daemon) waitUntilIdle() {
	d.t.Helper()
	d.waitForStatus("idle", daemonStatus.idle)
}

// waitForStatus waits until the daemon's status is as wanted.
func (d daemon) waitForStatus(what string, wanted func(daemonStatus) bool) {
	d.t.Helper()
	deadline := time.Now().Add(processTimeout)
	status, looks := d.status(), lookAgain{}
	for ; !wanted(status); status = d.status() {
		if time.Now().After(deadline) || d.hasEnded() {
			d.t.Fatalf("the daemon does not become %s: %+v; stderr:\n%s", what, status, d.stderr.String())
		}
		looks.pause()
	}
	if status.Totals.Bugs > 0 {
		d.t.Errorf("the daemon has counted %d bugs:\n%s", status.Totals.Bugs, d.stderr.String())
	}
}

// lookAgain pauses between looks at a condition, longer from time to time.
type lookAgain struct{ last time.Duration }

func (l *lookAgain) pause() {
	l.last = min(max(5*time.Millisecond, l.last*3/2), 200*time.Millisecond)
	time.Sleep(l.last)
}

// resources is what a process holds.
type resources struct {
	descriptors                   []string // what each is open on, sorted
	mappings, goroutines, threads int
	resident                      uint64 // bytes
}

// resources returns what the idle daemon holds.
func (d daemon) resources() resources {
	d.t.Helper()
	d.waitUntilIdle()
	numbers := d.metrics()
	process := fmt.Sprintf("/proc/%d/", d.command.Process.Pid)
	return resources{
		descriptors: openFiles(d.t, process), mappings: strings.Count(readFile(d.t, process+"maps"), "\n"),
		goroutines: numbers["go_goroutines"], threads: numbers["go_threads"],
		resident: kibibytes(process+"status", `VmRSS:\s+(\d+) kB`),
	}
}

var inodeNumber = regexp.MustCompile(`:\[\d+\]$`)

// openFiles returns what the descriptors of a process are open on, sorted and without numbers of inodes.
func openFiles(t *testing.T, process string) (names []string) {
	t.Helper()
	descriptors, err := os.ReadDir(process + "fd")
	must(t, err)
	for _, d := range descriptors {
		if name, err := os.Readlink(process + "fd/" + d.Name()); err == nil { // else closed meanwhile
			names = append(names, inodeNumber.ReplaceAllString(name, ""))
		}
	}
	slices.Sort(names)
	return names
}

// get returns what the daemon answers at the address of its metrics.
func (d daemon) get(path string) string {
	d.t.Helper()
	socket := filepath.Join(d.fixture.dir, d.fixture.serves, "metrics")
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	response, err := client.Get("http://localhost" + path)
	must(d.t, err)
	text, err := io.ReadAll(response.Body)
	must(d.t, errors.Join(err, response.Body.Close()))
	if response.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: %s: %s", path, response.Status, text)
	}
	return string(text)
}

// metrics returns the daemon's metrics without labels that are whole numbers.
func (d daemon) metrics() map[string]int {
	d.t.Helper()
	numbers := map[string]int{}
	for line := range strings.Lines(d.get("/metrics")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.Atoi(value); err == nil {
			numbers[name] = number
		}
	}
	return numbers
}

// expectNothingLeft expects no temporary file, no socket and no shared memory in any directory of the test, after all
// its processes have ended.
func (f *daemonFixture) expectNothingLeft() {
	f.t.Helper()
	f.expectLeft()
	var sockets []string
	must(f.t, filepath.WalkDir(f.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&fs.ModeSocket != 0 {
			sockets = append(sockets, path)
		}
		return err
	}))
	if len(sockets) > 0 {
		f.t.Errorf("sockets are left: %q", sockets)
	}
	left := namesIn(f.t, filepath.Join(f.dir, runtimeDir))
	if unused := f.address != "" && len(left) == 0; !unused && !slices.Equal(left, []string{".run/lock"}) {
		f.t.Errorf("the software device has left %q", left)
	}
}

// expectLeft expects these temporary files below the share and the directory of the commands, and no others.
func (f *daemonFixture) expectLeft(want ...string) {
	f.t.Helper()
	var left []string
	for _, root := range []string{f.share(), f.local()} {
		must(f.t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && isTemporary(path) {
				left = append(left, path)
			}
			return err
		}))
	}
	if !slices.Equal(left, want) {
		f.t.Errorf("temporary files: %q, want %q", left, want)
	}
}

// resourcesAtRest returns the resources of the idle daemon. One on the host looks for the commands of each name with a
// client of the device, which has a timer: after a command it opens another one before its next attempt, and keeps it.
func (d daemon) resourcesAtRest() resources {
	d.t.Helper()
	deadline := time.Now().Add(processTimeout)
	for d.fixture.serves == "host" && d.fixture.address == "" {
		open := d.resources().descriptors
		timers := slices.DeleteFunc(open, func(name string) bool { return name != "anon_inode:[timerfd]" })
		if len(timers) == len(service.CommandNames()) {
			break
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("the daemon has %d clients to look for commands", len(timers))
		}
	}
	return d.resources()
}

// expectResources waits until the daemon holds no more than before. Go keeps threads, and some of the memory that it
// has had in use.
func (d daemon) expectResources(before resources) {
	d.t.Helper()
	deadline, looks := time.Now().Add(processTimeout), lookAgain{}
	for now := d.resources(); now.exceed(before); now = d.resources() {
		if time.Now().After(deadline) {
			d.t.Errorf("the daemon held\n%+v, and now\n%+v", before, now)
			return
		}
		looks.pause()
	}
}

// exceed reports whether there are goroutines or open files that were not there before.
func (r resources) exceed(before resources) bool {
	rest := slices.Clone(before.descriptors)
	for _, name := range r.descriptors {
		i := slices.Index(rest, name)
		if i < 0 {
			return true
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return r.goroutines > before.goroutines
}
