//go:build cgo

package probe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ping"
)

const (
	hostFunction = "0000:b1:00.1"
	dpuFunction  = "0000:03:00.1"

	childVariable = "PROBE_TEST_CHILD"
)

func TestMain(m *testing.M) {
	if device := os.Getenv(childVariable); device != "" {
		os.Exit(beChild(device))
	}
	docatest.Main(m)
}

// beChild is the process that is killed.
func beChild(device string) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft})
	if err != nil {
		return 1
	}
	opened, err := driver.OpenDevice(device)
	if err != nil {
		return 1
	}
	o := Options{Device: opened}
	if opened.Info().IsDPU() {
		o.Side, o.Representor = wire.DPU, hostFunction
	}
	if Child(ctx, o) != nil {
		return 1
	}
	return 0
}

// runBoth makes all probes of both sides in this process, and returns the results of each.
func runBoth(t *testing.T, settings map[string]string) (results [2][]Result) {
	t.Helper()
	t.Setenv("DMA_COPY_SOFT_DIR", t.TempDir())
	for name, value := range settings {
		t.Setenv(name, value)
	}
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for side, name := range map[wire.Side]string{wire.Host: hostFunction, wire.DPU: dpuFunction} {
		device, err := driver.OpenDevice(name)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{
			Side: side, Device: device, Peer: true, Wait: time.Minute, Log: zerolog.Nop(),
			Child: func() *exec.Cmd {
				command := exec.Command("/proc/self/exe")
				command.Env = append(os.Environ(), childVariable+"="+name)
				return command
			},
		}
		if side == wire.DPU {
			o.Representor = hostFunction
		}
		running.Go(func() {
			var err error
			if results[side], err = Run(t.Context(), o); err != nil {
				t.Errorf("%s: %v", side, err)
			}
			if err := device.Close(); err != nil {
				t.Errorf("%s: %v", side, err)
			}
		})
	}
	running.Wait()
	if err := driver.Close(); err != nil {
		t.Error(err)
	}
	return results
}

// differing returns the results with another verdict than as assumed, by name. Both sides must have the results
// of probes that need both.
func differing(t *testing.T, settings map[string]string) map[string]Result {
	t.Helper()
	found := map[string]Result{}
	for side, results := range runBoth(t, settings) {
		for i := range register {
			a := &register[i]
			at := slices.IndexFunc(results, func(r Result) bool { return r.Name == a.name })
			if expected := a.needsBoth() || a.runsOn(wire.Side(side)); expected != (at >= 0) {
				t.Errorf("%s: %s has a result: %t", wire.Side(side), a.name, at >= 0)
			}
			if at >= 0 && results[at].Verdict != AsAssumed {
				found[a.name] = results[at]
			}
		}
	}
	return found
}

func TestSoftwareDeviceIsAsAssumed(t *testing.T) {
	for name, result := range differing(t, nil) {
		t.Errorf("%s: %s: %s", name, result.Verdict, result.Found)
	}
}

// notTried stands in front of the reason of a probe that cannot be tried.
const notTried = "not tried: "

// seen are the probes that differ with a quirk, and what the finding says.
var seen = map[string]map[string]string{
	"dead_peer_unnoticed":   {"server-dies": "does not show"},
	"comch_no_notification": {"channel-notification": "NOT_SUPPORTED"},
	"start_aborts":          {"no-server": "CONNECTION_ABORTED"},
	"no_host_export": {
		"import-read": "the host: ", "import-write": "the host: ",
		"window":       notTried + "this device exports no memory",
		"import-range": notTried + "the host exports no memory", "import-permissions": notTried + "see import-read",
		"export-ends": notTried + "the host exports no memory",
	},
}

// unseen are the quirks that no probe shows, and why.
var unseen = map[string]string{
	"disconnect_event":         "the program ignores the event",
	"disconnect_again":         "the program repeats the call",
	"large_messages":           "the program sends none",
	"no_dpu_export":            "the DPU exports nothing",
	"selective_swallow":        "the program never uses the mode SELECTIVE",
	"dead_clients_count":       "as many clients as max_clients, 512 by default, would have to die",
	"late_copy":                "the C layer keeps each message until it is sent, so that nothing can change it",
	"optimized_reports_stall":  "no task of the program has OPTIMIZE_REPORTS",
	"idle_alloc_crash":         "to see it is to crash; the C layer looks at the state before it allocates a task",
	"stop_in_send_error_crash": "to see it is to crash; the program stops no context in a callback",
	"untold_clients":           "the C layer tells a server of each client that has left",
	"late_disconnect_crash":    "to see it is to crash; the C layer ends a connection while it is valid",
}

func TestQuirksAreSeen(t *testing.T) {
	source, err := os.ReadFile("../../softdoca/device/quirk.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`\[SOFT_\w+\] = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		quirk := match[1]
		want, isSeen := seen[quirk]
		if _, isUnseen := unseen[quirk]; isSeen == isUnseen {
			t.Errorf("%s is in one of two tables: seen %t, unseen %t", quirk, isSeen, isUnseen)
		}
		if !isSeen {
			continue
		}
		t.Run(quirk, func(t *testing.T) {
			checkFound(t, differing(t, map[string]string{"DMA_COPY_SOFT_QUIRKS": quirk}), want)
		})
	}
}

// checkFound compares the probes that differ with those that have to.
func checkFound(t *testing.T, found map[string]Result, want map[string]string) {
	t.Helper()
	for name, result := range found {
		text, expected := want[name]
		verdict := Differs
		if reason, is := strings.CutPrefix(text, notTried); is {
			verdict, text = NotTried, reason
		}
		if !expected || result.Verdict != verdict || !strings.Contains(result.Found, text) ||
			(result.Means == "") != (verdict == NotTried) {
			t.Errorf("%s: %s: %s", name, result.Verdict, result.Found)
		}
	}
	for name := range want {
		if _, is := found[name]; !is {
			t.Errorf("%s is as assumed", name)
		}
	}
}

func TestOtherQuirksAreNotSeen(t *testing.T) {
	quirks := strings.Join(slices.Collect(maps.Keys(unseen)), ",")
	checkFound(t, differing(t, map[string]string{"DMA_COPY_SOFT_QUIRKS": quirks}), nil)
}

// Faults are findings, and nothing is left open after them. With one side it is certain which call a fault meets.
func TestFaultsAreSeen(t *testing.T) {
	for fault, want := range map[string]string{
		"flip=9":                          "tasks-in-flight differs byte ",
		"fail_memcpy=4:IO_FAILED":         "alignment differs doca_dma_task_memcpy: DOCA_ERROR_IO_FAILED",
		"refuse=doca_mmap_start:9:DRIVER": "source-lists could not be tried doca_mmap_start: DOCA_ERROR_DRIVER",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Setenv("DMA_COPY_SOFT_FAULTS", fault)
			results, err := Run(t.Context(), Options{Side: wire.Host, Device: docatest.OpenSides(t, "").Host})
			results = slices.DeleteFunc(results, func(r Result) bool { return r.Verdict == AsAssumed })
			if found := fmt.Sprint(results); err != nil || len(results) != 1 || !strings.HasPrefix(found, "[{"+want) {
				t.Errorf("found %s, error %v", found, err)
			}
		})
	}
	found := differing(t, map[string]string{"DMA_COPY_SOFT_FAULTS": "refuse=doca_comch_consumer_create:1:DRIVER"})
	checkFound(t, found, map[string]string{"fast-path": "doca_comch_consumer_create"})
}

// A user who ends the probes has found nothing.
func TestEndedProbes(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	results, _ := Run(ctx, Options{Side: wire.Host, Device: docatest.OpenSides(t, "").Host})
	for _, r := range results {
		if r.Verdict != NotTried || r.Found != "enough" {
			t.Errorf("%s: %s: %s", r.Name, r.Verdict, r.Found)
		}
	}
	if len(results) < 10 {
		t.Errorf("%d results", len(results))
	}
}

// A slow host is not taken for a call that hangs, and probes end within the limit of their conversation.
func TestTimes(t *testing.T) {
	if 2*answerTime >= askTime || probeTime+askTime >= 2*probeTime || allTime+2*probeTime >= ping.Limit {
		t.Error("a limit is too long for the limit that contains it")
	}
}

// A probe that hangs in a question keeps the conversation.
func TestHungQuestion(t *testing.T) {
	r := &run{Options: Options{Log: zerolog.Nop()}, hung: job.ErrHung}
	r.asking.Lock()
	if err := r.probeBoth(t.Context()); !errors.Is(err, job.ErrHung) {
		t.Errorf("error %v", err)
	}
}

// Messages that go on after their probe has failed end with it, and not with the next one.
func TestMessagesEndWithTheirProbe(t *testing.T) {
	p := &trial{run: &run{lost: errors.New("no host")}}
	ended := make(chan error)
	call := func(ctx context.Context, _ *doca.Connection, _ int) error {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	}
	for range 3 {
		if _, err := p.guarded(t.Context(), time.Minute, func() string {
			p.meanwhile(call, nil, "take")
			return ""
		}); err == nil {
			t.Error("no error")
		}
	}
	for range 3 {
		<-ended
	}
}

// Questions and results of the other side are bounded and checked.
func TestHostilePeer(t *testing.T) {
	sides := docatest.OpenSides(t, "")
	s := &service{trial: trial{run: &run{Options: Options{Side: wire.Host, Device: sides.Host}}}}
	for _, question := range []string{
		"", "nonsense", "sum", "unexport", "kill", "consumed", "wait", "hangup", "echo", "take 5", "send 1",
		"produce 1", "consume 1", "results", "produce 1048576", "export-read -1", "export-read 99999999999999999999",
	} {
		if answer, err := s.answer(t.Context(), question); err == nil {
			t.Errorf("%q: answer %q", question, answer)
		}
	}
	if _, err := s.answer(t.Context(), "export-read"); err != nil {
		t.Errorf("error %v", err)
	}
	for range 2 * maxUsed {
		_, _ = s.answer(t.Context(), "export-read")
	}
	if len(s.used) > maxUsed+3 || s.hung != nil { // a question opens at most 3
		t.Errorf("%d are open, hung %v", len(s.used), s.hung)
	}
	if _, err := s.answer(t.Context(), "end"); err != nil || len(s.used) > 0 {
		t.Errorf("%d are open after the end, error %v", len(s.used), err)
	}
	s.use(func() error { return errors.New("still in use") })
	for i, question := range []string{"export-read", "end", "sum"} {
		if _, err := s.answer(t.Context(), question); (err == nil) != (i == 0) {
			t.Errorf("%s: error %v", question, err)
		}
	}
	results := `[{"name":"task-size","verdict":"differs"},{"name":"new","verdict":"differs"},` +
		`{"name":"messages","verdict":"fine","found":"\u001b[2J"},` +
		`{"name":"import-read","verdict":"differs","found":"x"}]`
	for _, answer := range []string{`{"name":`, `{}`, `[]`, `[{"name":"task-size"},{"name":"new"}]`} {
		if err := s.take([]byte(answer)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: error %v", answer, err)
		}
	}
	if err := s.take([]byte(results)); err != nil {
		t.Error(err)
	}
	s.peer = &ping.Conversation{}
	s.complete(nil)
	for i, want := range []string{
		"import-read differs x", `messages could not be tried \x1b[2J`,
		"import-write could not be tried the DPU sent no result for this",
	} {
		got := s.results[i]
		if fmt.Sprintf("%s %s %s", got.Name, got.Verdict, got.Found) != want {
			t.Errorf("results %v, want %s", s.results, want)
		}
	}
}

func TestHugeTasksAreNotTried(t *testing.T) {
	r := &run{Options: Options{Side: wire.Host, Device: docatest.OpenSides(t, "max_buf_size=4294967295").Host}}
	for _, probe := range []func(*trial) string{taskLargest, taskTooLarge} {
		verdict, found := r.try(t.Context(), &assumption{probe: probe, on: either})
		if verdict != NotTried || !strings.Contains(found, "takes too much memory: the limit of probes is 64 MiB") {
			t.Errorf("%s: %s", verdict, found)
		}
	}
}

func TestLimitsAreSeen(t *testing.T) {
	for limits, want := range map[string]map[string]string{
		"pin_files=0":          {"mapped-file": ""},
		"max_buf_size=1048576": {"task-size": "1048576, published are 2097152"},
		"max_buf_list_len=1,max_msg_size=2048,max_dma_tasks=16": {
			"source-lists": "no lists", "message-size": "2048", "tasks-in-flight": "at most 16",
		},
	} {
		t.Run(limits, func(t *testing.T) {
			checkFound(t, differing(t, map[string]string{"DMA_COPY_SOFT_LIMITS": limits}), want)
		})
	}
}
