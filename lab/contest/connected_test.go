package contest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// startTestDaemon starts a shell script instead of the program.
func startTestDaemon(t *testing.T, script string) (*daemon, error) {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "dma-copy")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	m := &pairConfig{folder: folder, program: program, sides: bench.Sides{Host: "b1:00.1", DPU: "03:00.1",
		Representor: "b1:00.1"}}
	return m.startDaemon(t.Context(), newTestWorkspace(t, 1), DaemonOnDPU, nil)
}

func TestDaemonThatIsReady(t *testing.T) {
	d, err := startTestDaemon(t, `
pwd > arguments
echo "$*" >> arguments
trap 'exit 0' TERM
i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
echo first >&2
echo "ready dma-copy" >&2
while :; do sleep 0.01; done`)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(d.command.Dir, "arguments"))
	if err != nil || !strings.HasPrefix(string(text), d.command.Dir+"\nserve -p 03:00.1 -r b1:00.1 ") ||
		!strings.Contains(string(text), " --share bench=bench,rw --auth none ") {
		t.Errorf("%s, error %v", text, err)
	}
	run, err := d.timed(func() error { time.Sleep(time.Millisecond); return nil })
	if err != nil || run.Seconds < 0.001 || run.CPU <= 0 {
		t.Errorf("%+v, error %v", run, err)
	}
	if seconds, err := d.cpuSeconds(); err != nil || seconds < 0.001 {
		t.Errorf("CPU time %g, error %v", seconds, err)
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// A daemon that does not start, or does not end in order, is reported with its last line.
func TestDaemonThatFails(t *testing.T) {
	_, err := startTestDaemon(t, "echo first >&2; echo no device >&2; exit 6")
	if err == nil || !strings.Contains(err.Error(), "dma-copy serve ended: no device") ||
		!strings.Contains(err.Error(), "exit status 6") {
		t.Errorf("error %v", err)
	}
	d, err := startTestDaemon(t, `
trap 'echo broken >&2; exit 1' TERM
echo "ready" now >&2
while :; do sleep 0.01; done`)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.stop(); err == nil || !strings.Contains(err.Error(), "exit status 1: broken") {
		t.Errorf("error %v", err)
	}
}

// What goes to the daemon is pushed, whichever side it is on.
func TestPushOrPull(t *testing.T) {
	for side, pushed := range map[DaemonSide]bench.Direction{DaemonOnDPU: bench.HostToDPU,
		DaemonOnHost: bench.DPUToHost} {
		l := &link{daemon: &daemon{side: side}}
		for _, direction := range []bench.Direction{bench.HostToDPU, bench.DPUToHost} {
			if got := l.pushes(direction); got != (direction == pushed) {
				t.Errorf("daemon on the %s, %s: pushed %t", side, direction, got)
			}
		}
	}
}

// The copies of several clients are all there, whole and the same as the source.
func TestWrongCopiesOfClients(t *testing.T) {
	w := newTestWorkspace(t, 3)
	content, err := os.ReadFile(w.source())
	if err != nil {
		t.Fatal(err)
	}
	c := &clientsCopy{
		conditions: w.newConditions(6), link: &link{workspace: w},
		work: clientWork{size: 3, copies: 2},
	}
	put := func(number int, content string) {
		t.Helper()
		if err := os.WriteFile(c.targetOf(number), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(1, string(content))
	if err := c.Check(t.Context(), false); err == nil {
		t.Error("a missing copy is accepted")
	}
	put(2, "12")
	if err := c.Check(t.Context(), false); err == nil || err.Error() != "copy 2 has 2 bytes, not 3" {
		t.Errorf("error %v", err)
	}
	put(2, string(content[:2])+string(content[2]+1))
	err = c.Check(t.Context(), true)
	if err == nil || err.Error() != "copy 2 differs from the source, first at offset 2" {
		t.Errorf("error %v", err)
	}
	put(2, string(content))
	if err := c.Check(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// The share of the slowest client is that of the counted runs.
func TestResultOfClients(t *testing.T) {
	c := &clientsCopy{
		conditions: &conditions{}, link: &link{daemon: &daemon{side: DaemonOnDPU}},
		work: clientWork{size: 1 << 20, copies: 20}, slowest: []float64{0.1, 0.8, 0.7},
	}
	r := c.result(bench.Outcome{Runs: []bench.Run{{Seconds: 2, CPU: 1}, {Seconds: 2, CPU: 1}}})
	if r.Slowest != 0.7 || r.Rate != 10<<20 || r.CPUPerGiB != 51.2 || r.Error != "" {
		t.Errorf("%+v", r)
	}
	if r := c.result(bench.Outcome{Err: errFake}); r.Error != errFake.Error() || r.Rate != 0 {
		t.Errorf("%+v", r)
	}
}

// Several clients are compared with the one before them, unless that has failed.
func TestRatiosAreToOneClient(t *testing.T) {
	results := []ClientsResult{
		{Clients: 1, Seconds: spreadAt(1), Rate: 4}, {Clients: 16, Seconds: spreadAt(1), Rate: 3},
		{Clients: 1, Error: "failed"}, {Clients: 16, Seconds: spreadAt(1), Rate: 3},
	}
	setClientRatios(results)
	for i, want := range []float64{1, 0.75, 0, 0} {
		if results[i].Ratio != want {
			t.Errorf("%d: ratio %g, want %g", i, results[i].Ratio, want)
		}
	}
}

func TestConnectedCopiesNeedSpace(t *testing.T) {
	p := &ConnectedPlan{
		Sizes: []int64{5 << 20, 1 << 20}, Files: 100, Clients: 3, Daemons: []DaemonSide{DaemonOnDPU, DaemonOnHost},
		CopySettings: testSettings(""),
	}
	got := p.spaces()
	if got[0].bytes != 10<<20 || got[2].bytes != 31<<20 || got[2].inodes != 31 || got[1].inodes < 2*100*4 {
		t.Errorf("%+v", got)
	}
}

// A program that is no daemon ends the measurement with what it said, and leaves nothing behind.
func TestConnectedWithoutADaemon(t *testing.T) {
	p := Plan{
		Connected: &ConnectedPlan{
			Sizes: []int64{4096}, Files: 1, Daemons: []DaemonSide{DaemonOnDPU}, CopySettings: testSettings(t.TempDir()),
		},
		Settings: softDevice(1), Program: "/bin/false",
	}
	_, err := Measure(t.Context(), p)
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "dma-copy serve ended") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(p.Connected.Directory); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
