//go:build cgo

package doca_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// sweep runs sessions, each with another fault, and checks that none leaves anything open.
type sweep struct {
	dir     string        // where the software device's sockets are
	file    *os.File      // to be mapped
	log     *os.File      // what the software device says
	timeout time.Duration // of a session
	polled  bool          // chosen by chance; repeated runs try both
}

// grace is the longest timeout of a session, which ends one that hangs.
const grace = 30 * time.Second

// newSweep makes the device log into a file, where it reports that a fault was injected.
func newSweep(t *testing.T) *sweep {
	t.Helper()
	w := &sweep{dir: t.TempDir(), file: tempFile(t), log: tempFile(t), timeout: grace, polled: rand.IntN(2) == 0}
	t.Logf("channels are polled: %t", w.polled)
	if err := w.file.Truncate(sessionBytes); err != nil {
		t.Fatal(err)
	}
	w.logTo(t, w.log, 60)
	t.Cleanup(func() { w.logTo(t, os.Stderr, 10) })
	return w
}

func tempFile(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "file"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// logTo applies to all drivers that are opened from now on.
func (w *sweep) logTo(t *testing.T, file *os.File, level int) {
	t.Helper()
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	os.Stderr = file
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: w.dir, LogLevel: level})
	if err != nil {
		t.Fatal(err)
	}
	_ = driver.Close()
}

// until runs sessions with fault 1, fault 2 and so on, until one ends before its fault, and returns how many faults
// were injected. A session whose time is over before its fault is repeated with more time: the machine is busy.
func (w *sweep) until(t *testing.T, fault func(n int) string, check func(n int, err error)) int {
	t.Helper()
	for n := 1; ; n++ {
		happened, err := w.run(t, fault(n))
		for !happened && errors.Is(err, context.DeadlineExceeded) && w.timeout < grace {
			w.timeout *= 2
			happened, err = w.run(t, fault(n))
		}
		if happened {
			check(n, err)
		} else if err != nil {
			t.Errorf("no fault, and yet %v", err)
		}
		if t.Failed() {
			t.Fatalf("with the fault %s, which happened: %v; reported: %v", fault(n), happened, err)
		}
		if !happened {
			return n - 1
		}
	}
}

// run reports whether the fault was injected, and whether the session or its end returned an error.
func (w *sweep) run(t *testing.T, fault string) (happened bool, reported error) {
	t.Helper()
	if err := w.log.Truncate(0); err != nil {
		t.Fatal(err)
	}
	before := docatest.TakeInventory(t)
	reported = w.session(t, fault)
	before.MustBeUnchanged(t)
	docatest.MustBeClosed(t)
	if err := goleak.Find(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.dir, "*.*")); len(left) > 0 {
		t.Errorf("left in the runtime directory: %v", left)
	}
	said, err := os.ReadFile(w.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(said), "injected fault"), reported
}

func (w *sweep) session(t *testing.T, fault string) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: w.dir, SoftFaults: fault})
	if err != nil {
		return err
	}
	s := &session{ctx: ctx, driver: driver, file: w.file, polled: w.polled}
	used := s.run()
	failed, stuck := s.closeAll()
	if stuck != nil {
		t.Error(stuck)
	}
	return errors.Join(used, failed, driver.Close())
}

// listedFunctions returns the functions of the list that have a result, and so can be refused.
func listedFunctions(t *testing.T) []string {
	t.Helper()
	list, err := os.ReadFile("../../softdoca/abi/doca_functions.def")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	withResult := regexp.MustCompile(`(?m)^DOCA_FUNC\(\w+, \w+, doca_error_t, (\w+),`)
	for _, entry := range withResult.FindAllSubmatch(list, -1) {
		names = append(names, string(entry[1]))
	}
	return names
}

// irrefusable functions fail only when misused, and then a program cannot recover.
const irrefusable = "doca_buf_dec_refcount"

// needNotBeReported are functions whose refusal a session survives: queries of unknown values, also of a device or
// representor that is not opened, freeing of lists, and what is retried or no longer needed during closing, such as the
// disconnection of a client that has left.
var needNotBeReported = regexp.MustCompile(
	`_cap_|_get_(ibdev_name|iface_name|vuid|pci_func_type|active_rate|memrange)$|_destroy_list$|` +
		`^doca_devinfo_(rep_)?get_pci_addr_str$|^doca_dma_destroy$|^doca_ctx_(stop|get_state)$|` +
		`^doca_pe_(request|clear)_notification$|^doca_comch_server_disconnect$`)

// Every call of every function of DOCA that a session makes is refused, one in each session, with a fatal code and with
// one that asks for a retry, chosen by chance. Each time an error is reported, no wait is endless, everything can be
// closed, and nothing is left open.
func TestEveryCallRefused(t *testing.T) {
	w := newSweep(t)
	others := []string{"AGAIN", "IN_USE", "NOT_SUPPORTED"}
	called, calls := 0, 0
	for _, name := range listedFunctions(t) {
		if n := w.refuse(t, name, "DRIVER"); n > 0 {
			called++
			calls += n + w.refuse(t, name, others[rand.IntN(len(others))]) // repeated runs try all
		}
	}
	t.Logf("%d calls of %d functions refused", calls, called)
	if called < 80 {
		t.Error("a session calls more functions than that")
	}
}

// refuse returns how many calls of that function there were.
func (w *sweep) refuse(t *testing.T, name, code string) int {
	t.Helper()
	if name == irrefusable {
		return 0
	}
	fault := func(n int) string { return fmt.Sprintf("refuse=%s:%d:%s", name, n, code) }
	return w.until(t, fault, func(_ int, err error) {
		if err == nil && code == "DRIVER" && !needNotBeReported.MatchString(name) {
			t.Error("no error was reported")
		}
		mustNotHang(t, err)
	})
}

func mustNotHang(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, doca.ErrStillRunning) {
		t.Error("a wait did not end")
	}
}

func TestEveryTaskFailed(t *testing.T) {
	fault := func(n int) string { return fmt.Sprintf("fail=%d:IO_FAILED", n) }
	tasks := newSweep(t).until(t, fault, func(_ int, err error) {
		if err == nil {
			t.Error("no error was reported")
		}
		mustNotHang(t, err)
	})
	if tasks < 5 {
		t.Errorf("only %d tasks", tasks)
	}
}

func TestEveryMessageCut(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_QUIRKS", "") // of which one is not to notice
	messages := newSweep(t).until(t, func(n int) string { return fmt.Sprintf("cut=%d", n) }, func(_ int, err error) {
		if err == nil {
			t.Error("no error was reported")
		}
		mustNotHang(t, err)
	})
	if messages < 2 {
		t.Errorf("only %d messages", messages)
	}
}

// A session with a silent peer ends only by its own deadline; then it can be closed as any other.
func TestSilenceFromEveryMessageOn(t *testing.T) {
	w := newSweep(t)
	w.timeout = time.Second
	w.until(t, func(n int) string { return fmt.Sprintf("mute=%d", n) }, func(_ int, err error) {
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, doca.ErrStillRunning) {
			t.Errorf("got %v, want the deadline", err)
		}
	})
}
