package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
)

// While a command looks for a daemon there is no progress yet, but the same line, which is removed at the end. A
// request is answered by a line that stays.
func TestWaitingForADaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		terminal := &Screen{out: &out, width: func() int { return 120 }}
		w := report.WaitForDaemon(wire.Host, "b1:00.1", "", false, 30*time.Second)
		to := NewWaitOutput(nil, terminal, terminal, option.OutputText, false, zerolog.Nop())
		Waiting(w, to, nil)() // found at once
		if out.Len() > 0 {
			t.Errorf("wrote %q", out.String())
		}
		asked := make(chan os.Signal)
		stop := Waiting(w, to, asked)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		out.Reset()
		asked <- syscall.SIGUSR1
		synctest.Wait()
		const line = "waiting for the daemon on the DPU (12s of 30s): start there: " +
			"dma-copy serve -p DEVICE -r b1:00.1 --share NAME=DIR"
		stop()
		if want := eraseLine + line + "\n" + line + eraseLine; out.String() != want {
			t.Errorf("wrote %q, want %q", out.String(), want)
		}
		Waiting(w, WaitOutput{}, nil)()
	})
}

// A quiet command answers a request, too, and nothing wakes the process in between.
func TestWaitingWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	asked := make(chan os.Signal)
	to := NewWaitOutput(nil, &out, nil, option.OutputText, true, zerolog.Nop())
	stop := Waiting(report.Wait{For: "the DPU"}, to, asked)
	asked <- syscall.SIGUSR1
	stop()
	if out.String() != "waiting for the DPU\n" {
		t.Errorf("wrote %q", out.String())
	}
}

// The line says how long and what to start there, as far as it fits.
func TestLinesOfWaits(t *testing.T) {
	const lasted = 12*time.Second + 700*time.Millisecond
	host := report.WaitForPeer(wire.Host, "b1:00.1", "", "", time.Minute)
	for _, tc := range []struct {
		wait  report.Wait
		width int
		want  string
	}{
		{host, 120, "waiting for the DPU (12s of 1m): start there: dma-copy -p DEVICE -r b1:00.1 -f FILE"},
		{host, 80, "waiting for the DPU (12s of 1m): start there: dma-copy -r b1:00.1 -f FILE"},
		{host, 70, "waiting for the DPU (12s of 1m)"},
		{host, 30, "waiting for the DPU"},
		{host, 10, ""},
		{report.WaitForPeer(wire.DPU, "b1:00.1", "", "", 90*time.Second), 100,
			"waiting for the host (12s of 1m30s): start there: dma-copy -p b1:00.1 -f FILE"},
		{report.WaitForPeer(wire.DPU, "", "", "", 10*time.Second), 100,
			"waiting for the host (10s of 10s): start there: dma-copy -p DEVICE -f FILE"},
		{report.WaitForCommand(wire.Host, "b1:00.1", "dma-copy ping", 10*time.Second), 100,
			"waiting for the DPU (10s of 10s): start there: dma-copy ping -p DEVICE -r b1:00.1"},
		{report.WaitForDaemon(wire.DPU, "", "", false, time.Hour), 110,
			"waiting for the daemon on the host (12s of 1h): start there: dma-copy serve -p DEVICE --share NAME=DIR"},
		{report.WaitForDaemon(wire.DPU, "b1:00.0", "", false, time.Hour), 110,
			"waiting for the daemon on the host (12s of 1h): start there: dma-copy serve -p b1:00.0 --share NAME=DIR"},
		{report.WaitForDaemon(wire.Client, "", "lab:7483", false, 20*time.Second), 120,
			"waiting for the daemon at lab:7483 (12s of 20s): start there: " +
				"dma-copy serve --listen :7483 --share NAME=DIR"},
		{report.Wait{For: "the DPU"}, 80, "waiting for the DPU"},
	} {
		var out bytes.Buffer
		screen := &Screen{out: &out, width: func() int { return tc.width + interruptWidth }}
		screen.showWait(tc.wait, lasted)
		if got := strings.TrimPrefix(out.String(), eraseLine); got != tc.want && tc.width < 120 || len(got) > tc.width {
			t.Errorf("width %d: %q, want %q", tc.width, got, tc.want)
		}
		if tc.width >= 120 && tc.wait.Lines(lasted)[0] != tc.want {
			t.Errorf("%q, want %q", tc.wait.Lines(lasted)[0], tc.want)
		}
	}
}

// SIGUSR1 is answered in every phase, also without progress: by a line and what the copy waits for, or one event.
func TestRequestsAreAnswered(t *testing.T) {
	meeting, moving := job.Sample{}, job.Sample{
		Phase: job.Moving, Moved: 1 << 30, Total: 4 << 30, Elapsed: 2 * time.Second,
	}
	var text, events bytes.Buffer
	s := Form{Quiet: true, Progress: ProgressAuto, Output: option.OutputText}
	synctest.Test(t, func(*testing.T) { // where no second passes meanwhile
		for _, r := range []report.Reporter{
			newText(io.Discard, &text, nil, s, zerolog.Nop()), newJSON(&events, s, zerolog.Nop()),
		} {
			r.Begin(report.Path{Side: wire.Host, Wait: report.WaitForPeer(wire.Host, "b1:00.1", "", "", time.Minute)})
			r.Asked(meeting, nil)
			r.Asked(moving, []job.Snapshot{{
				Side: "host", Peer: "DPU", Role: "sender", State: "transferring", PeerHasTo: []string{"answer 1 entry"},
			}})
		}
	})
	const want = "waiting for the DPU (0s of 1m): start there: dma-copy -p DEVICE -r b1:00.1 -f FILE\n" +
		"25%  1.0 GiB/4.0 GiB  512 MiB/s  ETA 6s\n" +
		"  the host waits for the DPU to answer 1 entry; last progress 0.0s ago, last message of the DPU 0.0s ago\n" +
		"  messages: 0 unsent, last one sent 0.0s ago\n"
	if text.String() != want {
		t.Errorf("wrote %q, want %q", text.String(), want)
	}
	lines := slices.Collect(strings.Lines(events.String()))
	if len(lines) != 2 || !strings.Contains(lines[0], `"type":"waiting",`) ||
		!strings.Contains(lines[1], `"phase":"moving","bytes":1073741824,"total_bytes":4294967296,`) ||
		!strings.Contains(lines[1], `"waits":[{"side":"host","peer":"DPU","role":"sender",`) {
		t.Errorf("events\n%s", events.String())
	}
	for _, line := range lines {
		if _, err := checkEvent(line); err != nil {
			t.Error(err)
		}
	}
}

// A monitor answers requests until it is stopped, without an interval as well.
func TestMonitorAnswersRequests(t *testing.T) {
	var text bytes.Buffer
	m := report.NewMonitor(newText(io.Discard, &text, nil, Form{Quiet: true, Progress: ProgressAuto},
		zerolog.Nop()), report.Asked{})
	m.Begin(report.Path{Side: wire.Host})
	asked := make(chan os.Signal)
	stop := m.Watch(asked)
	asked <- syscall.SIGUSR1
	asked <- syscall.SIGUSR1
	stop()
	if want := strings.Repeat("waiting for the DPU\n", 2); text.String() != want {
		t.Errorf("wrote %q, want %q", text.String(), want)
	}
	m.Watch(nil)()
}

// A command with many peers answers for all of them.
func TestFleetAnswersRequests(t *testing.T) {
	for _, form := range []option.OutputForm{option.OutputText, option.OutputJSON} {
		var stdout, stderr bytes.Buffer
		f := NewFleet(&stdout, &stderr, nil, Form{Output: form}, zerolog.Nop())
		f.Begin(3)
		f.moves(1, 1<<20)
		asked := make(chan os.Signal)
		stop := f.Watch(asked, func() {
			f.waits(&PeerResult{Name: "one:in", Line: 1}, job.Sample{
				Phase: job.Moving, Moved: 1 << 20, Total: 4 << 20, Elapsed: time.Second,
			}, []job.Snapshot{{Side: "host", Peer: "DPU", PeerHasTo: []string{"acknowledge 2 slots"}}})
			f.waits(&PeerResult{Name: "two:in", Line: 2}, job.Sample{}, nil)
		})
		asked <- syscall.SIGUSR1
		stop()
		if form == option.OutputText {
			if want := "0/3 peers  1 running  1.0 MiB\n" +
				"run   one:in: 25%  1.0 MiB/4.0 MiB  1.0 MiB/s  ETA 3s; the host waits for the DPU " +
				"to acknowledge 2 slots; last progress 0.0s ago, last message of the DPU 0.0s ago\n" +
				"run   two:in: the daemon has not begun the copy\n"; stderr.String() != want || stdout.Len() > 0 {
				t.Errorf("wrote %q, want %q", stderr.String(), want)
			}
			continue
		}
		for line := range strings.Lines(stdout.String()) {
			if kind, err := checkEvent(line); kind != "progress" || err != nil || stderr.Len() > 0 {
				t.Errorf("wrote %q: %v", line, err)
			}
		}
		if !strings.Contains(stdout.String(), `"peer":"one:in","line":1,"phase":"moving","bytes":1048576,`) ||
			strings.Count(stdout.String(), "\n") != 3 {
			t.Errorf("wrote %s", stdout.String())
		}
	}
}

// Without a terminal a long wait is said every 10 seconds, as a line or an event.
func TestLinesOfLongWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var daemon, copying, fleet bytes.Buffer
		w := report.WaitForDaemon(wire.Client, "", "lab:7483", false, time.Minute)
		to := NewWaitOutput(nil, &daemon, nil, option.OutputText, false, zerolog.Nop())
		stop := Waiting(w, to, nil)
		peers := NewFleet(nil, &fleet, nil, Form{Progress: ProgressAuto}, zerolog.Nop())
		stopFleet := Waiting(w, peers.WaitOutput("lab:in/", 3), nil)
		r := newText(io.Discard, &copying, nil, Form{Progress: ProgressAuto}, zerolog.Nop())
		r.Begin(report.Path{Side: wire.Host, Wait: report.WaitForPeer(wire.Host, "b1:00.1", "a b", "", time.Minute)})
		var events, fleetEvents bytes.Buffer
		machine := newJSON(&events, Form{Progress: ProgressAuto}, zerolog.Nop())
		machine.Begin(report.Path{Side: wire.Host, Wait: w})
		s := Form{Progress: ProgressAuto, Output: option.OutputJSON}
		peers = NewFleet(&fleetEvents, nil, nil, s, zerolog.Nop())
		stopFleetEvents := Waiting(w, peers.WaitOutput("lab:in/", 3), nil)
		for range 20 {
			time.Sleep(time.Second)
			machine.Progress(job.Sample{})
			if time.Since(r.began)%r.Interval() == 0 {
				r.Progress(job.Sample{})
			}
		}
		time.Sleep(time.Second)
		stop()
		stopFleet()
		stopFleetEvents()
		for _, all := range []string{events.String(), fleetEvents.String()} {
			for line := range strings.Lines(all) {
				if kind, err := checkEvent(line); kind != "waiting" || err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
			const second = `"start":"dma-copy serve --listen :7483 --share NAME=DIR",` +
				`"elapsed_seconds":20,"wait_seconds":60}`
			if strings.Count(all, "\n") != 2 || !strings.HasSuffix(all, second+"\n") {
				t.Errorf("events:\n%s", all)
			}
		}
		if want := `"peer":"lab:in/","line":3,`; strings.Count(fleetEvents.String(), want) != 2 {
			t.Errorf("events of peers:\n%s", fleetEvents.String())
		}
		const daemonLine = "waiting for the daemon at lab:7483 (%s of 1m): " +
			"start there: dma-copy serve --listen :7483 --share NAME=DIR\n"
		const peerLine = "waiting for the DPU (%s of 1m): start there: dma-copy -p DEVICE -r b1:00.1 -f 'a b'\n"
		for got, line := range map[string]string{daemon.String(): daemonLine, copying.String(): peerLine,
			fleet.String(): "wait  lab:in/: " + daemonLine} {
			if want := fmt.Sprintf(line, "10s") + fmt.Sprintf(line, "20s"); got != want {
				t.Errorf("wrote %q, want %q", got, want)
			}
		}
	})
}
