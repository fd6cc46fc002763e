//go:build cgo

package doca_test

import (
	"context"
	"errors"
	"fmt"
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

// sweep runs sessions, each with another fault, and holds every one of them to leaving nothing behind.
type sweep struct {
	dir      string        // where the software device's sockets are
	file     *os.File      // to be mapped
	log      *os.File      // what the software device says
	patience time.Duration // of a session
}

// newSweep also has the device log into a file, for there it says when a fault has happened.
func newSweep(t *testing.T) *sweep {
	t.Helper()
	w := &sweep{dir: t.TempDir(), file: tempFile(t), log: tempFile(t), patience: 30 * time.Second}
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

// logTo is for all drivers that are opened from now on.
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

// until runs sessions with fault 1, fault 2 and so on, until one is over before its fault could happen. It says how
// many happened.
func (w *sweep) until(t *testing.T, fault func(n int) string, check func(n int, err error)) int {
	t.Helper()
	for n := 1; ; n++ {
		happened, err := w.run(t, fault(n))
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

// run says whether the fault happened, and what was reported by the session or by its end.
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
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
	defer cancel()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: w.dir, SoftFaults: fault})
	if err != nil {
		return err
	}
	s := &session{ctx: ctx, driver: driver, file: w.file}
	used := s.run()
	failed, stuck := s.closeAll()
	if stuck != nil {
		t.Error(stuck)
	}
	return errors.Join(used, failed, driver.Close())
}

// listedFunctions are those of the list of DOCA's functions that have a result, and so can be refused.
func listedFunctions(t *testing.T) []string {
	t.Helper()
	list, err := os.ReadFile("internal/abi/doca_functions.def")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range regexp.MustCompile(`(?m)^DOCA_FUNC\(\w+, \w+, doca_error_t, (\w+),`).FindAllSubmatch(list, -1) {
		names = append(names, string(entry[1]))
	}
	return names
}

// irrefusable fails only for who misuses it: nobody could do anything about it.
const irrefusable = "doca_buf_dec_refcount"

// needNotBeReported are those whose refusal a session survives: what is asked and not known, also of a device that is
// not the one to open, lists that are only freed, and what is tried again or not wanted any more while something
// closes.
var needNotBeReported = regexp.MustCompile(`_cap_|_get_(ibdev_name|iface_name|vuid|pci_func_type|active_rate|memrange)$|_destroy_list$|` +
	`^doca_devinfo_get_pci_addr_str$|^doca_dma_destroy$|^doca_ctx_(stop|get_state)$|^doca_pe_(request|clear)_notification$`)

// Every call of every function of DOCA that a session makes is refused, one in each session, with a code that ends things
// and with codes that ask for something else. Each time somebody hears of it, nobody waits for what cannot come, everything
// can be closed, and nothing is left.
func TestEveryCallRefused(t *testing.T) {
	w, names := newSweep(t), listedFunctions(t)
	for _, code := range []string{"DRIVER", "AGAIN", "IN_USE", "NOT_SUPPORTED"} {
		var called []string
		calls := 0
		for _, name := range names {
			if n := w.refuse(t, name, code); n > 0 {
				called = append(called, name)
				calls += n
			}
		}
		t.Logf("%s: %d calls of %d functions refused", code, calls, len(called))
		names = called
	}
	if len(names) < 80 {
		t.Error("a session calls more functions than that")
	}
}

// refuse says how many calls of that function there were to be refused.
func (w *sweep) refuse(t *testing.T, name, code string) int {
	t.Helper()
	if name == irrefusable {
		return 0
	}
	return w.until(t, func(n int) string { return fmt.Sprintf("refuse=%s:%d:%s", name, n, code) }, func(_ int, err error) {
		if err == nil && code == "DRIVER" && !needNotBeReported.MatchString(name) {
			t.Error("nobody heard of it")
		}
		mustNotHang(t, err)
	})
}

func mustNotHang(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, doca.ErrStillRunning) {
		t.Error("somebody waited for what could not come")
	}
}

func TestEveryTaskFailed(t *testing.T) {
	tasks := newSweep(t).until(t, func(n int) string { return fmt.Sprintf("fail=%d:IO_FAILED", n) }, func(_ int, err error) {
		if err == nil {
			t.Error("nobody heard of it")
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
			t.Error("nobody heard of it")
		}
		mustNotHang(t, err)
	})
	if messages < 2 {
		t.Errorf("only %d messages", messages)
	}
}

// Nothing ends a session with a silent peer but its own deadline; then it can be closed like any other.
func TestSilenceFromEveryMessageOn(t *testing.T) {
	w := newSweep(t)
	w.patience = time.Second
	w.until(t, func(n int) string { return fmt.Sprintf("mute=%d", n) }, func(_ int, err error) {
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, doca.ErrStillRunning) {
			t.Errorf("got %v, want the deadline", err)
		}
	})
}
