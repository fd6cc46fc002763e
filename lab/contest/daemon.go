package contest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// DaemonSide is the side of a daemon. The commands that use it are on the other one.
type DaemonSide string

// The sides of a daemon.
const (
	DaemonOnDPU  DaemonSide = "dpu"
	DaemonOnHost DaemonSide = "host"
)

// shareName is the name of the workspace as a share of the daemons.
const shareName = "bench"

// meetingTime is how long a daemon may take to start, or to be found.
const meetingTime = 20 * time.Second

// daemon is a process of dma-copy serve, whose share is the workspace, and how this process connects to it. It takes
// any key, because what is measured is the same with keys: they count when a connection is made only.
type daemon struct {
	side    DaemonSide
	argv    []string
	command *exec.Cmd
	meeting service.Meeting // of a command on the other side
	ended   chan struct{}   // closed when it no longer writes to stderr

	mu   sync.Mutex
	last string // line on stderr
}

// startDaemon starts a daemon and waits until it is ready. device is that of the other side.
func (m *pairConfig) startDaemon(
	ctx context.Context, w *workspace, side DaemonSide, device *doca.Device,
) (*daemon, error) {
	meeting := service.Meeting{Device: device, Side: wire.Host, Wait: meetingTime}
	at := []string{"-p", m.sides.DPU, "-r", m.sides.Representor}
	if side == DaemonOnHost {
		at = []string{"-p", m.sides.Host}
		meeting.Side, meeting.Representor = wire.DPU, m.sides.Representor
	}
	return m.launch(ctx, w, &daemon{side: side, meeting: meeting}, append(at, m.driver...))
}

// launch starts a daemon with some flags and waits until it is ready.
func (m *pairConfig) launch(ctx context.Context, w *workspace, d *daemon, flags []string) (*daemon, error) {
	state, err := os.MkdirTemp(m.folder, "daemon-")
	if err != nil {
		return nil, err
	}
	shared, err := filepath.Abs(w.folder)
	if err != nil {
		return nil, err
	}
	// With a comma in it, --share would not take the path itself.
	if err := os.Symlink(shared, disk.Join(state, shareName)); err != nil {
		return nil, err
	}
	d.ended = make(chan struct{})
	d.argv = append([]string{"dma-copy", "serve"}, flags...)
	d.argv = append(d.argv, "--share", shareName+"="+shareName+",rw", "--auth", "none", "--digest", "none",
		"--durability", "none", "--keys", "keys", "--runtime-dir", ".") // short, because of the daemon's socket
	d.command = exec.Command(d.argv[0], d.argv[1:]...)
	d.command.Path, d.command.Err = m.program, nil
	d.command.Dir, d.command.Env = state, m.environment
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

func (d *daemon) start(ctx context.Context) error {
	stderr, err := d.command.StderrPipe()
	if err != nil {
		return err
	}
	if err := d.command.Start(); err != nil {
		return err
	}
	ready := make(chan struct{})
	go d.follow(stderr, sync.OnceFunc(func() { close(ready) }))
	select {
	case <-ready:
		return nil
	case <-d.ended:
		return fmt.Errorf("%s serve ended: %s", d.argv[0], d.lastLine())
	case <-time.After(meetingTime):
		return fmt.Errorf("%s serve is not ready after %s: %s", d.argv[0], meetingTime, d.lastLine())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// follow reads what the daemon writes until its end, and calls ready when it serves.
func (d *daemon) follow(stderr io.Reader, ready func()) {
	defer close(d.ended)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		d.mu.Lock()
		d.last = lines.Text()
		d.mu.Unlock()
		if strings.HasPrefix(lines.Text(), "ready ") {
			ready()
		}
	}
}

func (d *daemon) lastLine() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// stop ends the daemon and waits for it.
func (d *daemon) stop() error {
	if d.command.Process == nil {
		return nil
	}
	kill := time.AfterFunc(drainTime, func() { _ = d.command.Process.Kill() })
	defer kill.Stop()
	if err := d.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-d.ended
	if err := d.command.Wait(); err != nil {
		return fmt.Errorf("%s serve: %w: %s", d.argv[0], err, d.lastLine())
	}
	return nil
}

// connect makes a connection to the daemon.
func (d *daemon) connect(ctx context.Context, software string) (*service.Client, error) {
	return service.Dial(ctx, d.meeting, service.ClientConfig{
		Verify: secure.AnyKey, Anonymous: true, Software: software, Log: zerolog.Nop(),
	})
}

// cpuSeconds returns the CPU time of the daemon and of this process so far.
func (d *daemon) cpuSeconds() (float64, error) {
	const perProcess = 2 // see clock_getcpuclockid(3): the scheduler's clock of a whole process
	var theirs, own unix.Timespec
	if err := unix.ClockGettime(int32(^d.command.Process.Pid<<3|perProcess), &theirs); err != nil {
		return 0, fmt.Errorf("CPU time of %s serve: %w: %s", d.argv[0], err, d.lastLine())
	}
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &own); err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	return time.Duration(theirs.Nano() + own.Nano()).Seconds(), nil
}

// timed calls do and returns how long it took, and the CPU time of both processes.
func (d *daemon) timed(do func() error) (bench.Run, error) {
	before, err := d.cpuSeconds()
	if err != nil {
		return bench.Run{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return bench.Run{}, err
	}
	run := bench.Run{Seconds: time.Since(began).Seconds()}
	after, err := d.cpuSeconds()
	run.CPU = after - before
	return run, err
}

// pathChoices are the values of --path.
var pathChoices = map[string]job.PathChoice{
	"auto": job.AnyPath, "dma": job.OnlyDMA, "fast": job.OnlyFast,
	"tls": job.OnlyTLS, "tcp": job.OnlyTCP, "am": job.OnlyMessages, "rma": job.OnlyRMA,
}
