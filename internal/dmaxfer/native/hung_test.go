package native

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// hangingAt returns a Plan by which the operation of this number among such, given as "op name" and counted from 1,
// hangs until release is called, in the test's bubble. A second later interrupt is called.
func hangingAt(number int, operation string, interrupt func()) (plan disktest.Plan, release func()) {
	var until chan struct{}
	plan = func(_ int, op, name string) *disktest.Fault {
		if !strings.HasPrefix(op+" "+name, operation) {
			return nil
		}
		if number--; number != 0 {
			return nil
		}
		until = make(chan struct{}) // in the bubble, where the operation waits for it
		time.AfterFunc(time.Second, interrupt)
		return &disktest.Fault{Hang: until}
	}
	return plan, func() {
		if until != nil {
			close(until)
		}
	}
}

// slow returns a Fault by which an operation takes that long.
func slow(duration time.Duration) *disktest.Fault {
	until := make(chan struct{})
	time.AfterFunc(duration, func() { close(until) })
	return &disktest.Fault{Hang: until}
}

// A receiver that is interrupted while a commit hangs does not claim that nothing more will be committed: the sender
// does not know the outcome, and the file may get its name later.
func TestCommitOfATreeThatHangs(t *testing.T) {
	for name, c := range map[string]struct {
		number     int
		operation  string
		file       string
		durability wire.Durability
	}{
		"of a small file":     {1, "name f001", "/dst/t/f001", wire.DurabilityNone},
		"of a staged file":    {1, "name f001", "/dst/t/f001", wire.DurabilityFull},
		"of the staged names": {2, "syncfs", "", wire.DurabilityFull}, // of all files, or the first ones
		"of a large file":     {1, "rename large", "/dst/t/large", wire.DurabilityNone},
	} {
		for _, dpuSends := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				from := newSmallSource(3)
				if strings.HasSuffix(c.file, "large") {
					from.Put("/src/large", roletest.Repeated("large", 20*4096))
				}
				m := newMeeting(t, from, newTarget())
				m.dpuSends = dpuSends
				m.config(func(of *role.Config) { of.Durability = c.durability })
				plan, release := hangingAt(c.number, c.operation, func() { m.receiver.interrupt(errInterrupted) })
				faulty := m.onReceiver(plan)
				m.ended = release
				m.run()
				mustBe(t, m.sender.err, wire.ErrOutcomeUnknown)
				mustBe(t, m.receiver.err, job.ErrHung)
				mustBe(t, m.receiver.err, errInterrupted)
				if text := m.sender.err.Error(); strings.Count(text, "unknown") != 1 {
					t.Errorf("the sender says: %s", text)
				}
				if !faulty.Fired() || m.messages[wire.TypeAbort] != 0 {
					t.Errorf("%d messages ABORT", m.messages[wire.TypeAbort])
				}
				files := []string{c.file}
				if c.file == "" {
					files = []string{"/dst/t/f000", "/dst/t/f001", "/dst/t/f002"}
				}
				if !slices.ContainsFunc(files, func(name string) bool { _, found := m.to.Get(name); return found }) {
					t.Error("the file has not got its name when the call returned")
				}
			})
		}
	}
}

// A sender that has given up and does not understand the results that it waits for does not know the outcome.
func TestResultsThatAreNotUnderstood(t *testing.T) {
	from := disktest.NewMemory("/", "/src")
	from.Put("/src/large", roletest.Repeated("large", 20*4096))
	m := newMeeting(t, from, newTarget())
	m.onReceiver(func(_ int, op, name string) *disktest.Fault {
		if op+" "+name != "rename large" {
			return nil
		}
		m.sender.interrupt(errInterrupted)
		return slow(job.PartingTime / 2)
	})
	m.alter = func(message []byte) {
		if _, err := protocol.DecodeResults(nil, message); err == nil && m.sent(wire.TypeAbort) {
			message[len(message)-1] = 1 // of the padding
		}
	}
	m.run()
	mustBe(t, m.sender.err, wire.ErrOutcomeUnknown)
}

// A receiver that gives up while it renames a large file waits for that, and reports it before its ABORT.
func TestLargeFileIsReportedBeforeTheAbort(t *testing.T) {
	for _, dpuSends := range []bool{false, true} {
		from := disktest.NewMemory("/", "/src")
		for _, path := range []string{"/src/a", "/src/b"} {
			from.Put(path, roletest.Repeated(path, 20*4096))
		}
		m := newMeeting(t, from, newTarget())
		m.dpuSends = dpuSends
		m.sender.config.FailFast = true
		m.onReceiver(func(_ int, op, name string) *disktest.Fault {
			switch {
			case op == "rename" && name == "a":
				return slow(job.PartingTime / 2)
			case op == "chmod" && strings.HasPrefix(name, ".b."):
				return slow(job.PartingTime / 4)
			case op == "utimes" && strings.HasPrefix(name, ".b."):
				return &disktest.Fault{Err: unix.EIO}
			}
			return nil
		})
		m.run()
		mustBe(t, m.receiver.err, unix.EIO)
		if !abortedWith(m.sender.err, wire.AbortTarget) {
			t.Errorf("the sender ended with %v", m.sender.err)
		}
		_, found := m.to.Get("/dst/t/a")
		for side, p := range map[string]*party{"sender": m.sender, "receiver": m.receiver} {
			if copied := p.actions()["a"] == job.Copied.String(); copied != found {
				t.Errorf("the file has its name: %t, the %s says that it is copied: %t", found, side, copied)
			}
		}
		if !found {
			t.Error("the file was not renamed")
		}
	}
}
