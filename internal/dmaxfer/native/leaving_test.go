package native

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// onReceiver makes operations of the receiver's file system fail, and returns it for its trace.
func (m *meeting) onReceiver(plan disktest.Plan) *disktest.Faulty {
	faulty := disktest.NewFaulty(m.to, plan)
	m.receiver.search.FS = faulty
	return faulty
}

// faultless is a Plan by which nothing fails.
func faultless(int, string, string) *disktest.Fault { return nil }

// failing returns a Plan by which all of these operations fail, each given as "op name".
func failing(operations ...string) disktest.Plan {
	return func(_ int, op, name string) *disktest.Fault {
		if slices.Contains(operations, op+" "+name) {
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	}
}

// place returns the place of an operation in a trace, which must have it.
func place(t *testing.T, trace []string, operation string) int {
	t.Helper()
	at := slices.Index(trace, operation)
	if at < 0 {
		t.Fatalf("%q is not among\n%s", operation, strings.Join(trace, "\n"))
	}
	return at
}

// mustFollow fails the test unless the operations come in this order, each for the first time.
func mustFollow(t *testing.T, trace []string, operations ...string) {
	t.Helper()
	for i := range operations[1:] {
		if place(t, trace, operations[i]) > place(t, trace, operations[i+1]) {
			t.Errorf("%q comes after %q in\n%s", operations[i], operations[i+1], strings.Join(trace, "\n"))
		}
	}
}

// A directory gets its mode and time after all of its content has its final name, and before the directory above it.
func TestDirectoriesAreLeftAfterTheirContent(t *testing.T) {
	for _, durability := range []wire.Durability{wire.DurabilityNone, wire.DurabilityFull} {
		from := disktest.NewMemory("/", "/src", "/src/one", "/src/one/two", "/src/zero")
		from.Put("/src/one/two/small", "small")
		from.Put("/src/one/two/large", roletest.Repeated("large", 20*4096))
		from.Put("/src/one/zz", "in the middle")
		for i, path := range []string{"/src/one/two", "/src/one", "/src/zero", "/src"} {
			setAttributes(t, from, path, 0o500, int64(1000+i)) // nothing could be created in it any more
		}
		m := newMeeting(t, from, newTarget())
		m.receiver.config.Durability = durability
		faulty := m.onReceiver(faultless)
		m.mustSucceed()
		m.mustHaveSame()
		trace := faulty.Trace()
		for _, content := range []string{"name small", "rename large"} {
			if !slices.Contains(trace, content) {
				content = strings.Replace(content, "rename", "name", 1)
			}
			mustFollow(t, trace, content, "chmod two", "utimes two", "chmod one", "utimes one", "chmod t", "utimes t")
		}
		mustFollow(t, trace, "name zz", "chmod one")
		mustFollow(t, trace, "mkdir zero", "utimes zero", "utimes t")
		if n := strings.Count(strings.Join(trace, "\n"), "utimes two"); n != 1 {
			t.Errorf("the time of a directory was set %d times", n)
		}
	}
}

// A directory whose mode or time cannot be set fails, although its content is there, and nothing else does.
func TestDirectoryThatCannotBeLeft(t *testing.T) {
	for _, operation := range []string{"chmod", "utimes"} {
		for _, dpuSends := range []bool{false, true} {
			m := newMeeting(t, newTreeSource(t), newTarget())
			m.dpuSends = dpuSends
			m.onReceiver(failing(operation + " b"))
			m.mustFailInPart("a/b")
			text, _ := m.to.Get("/dst/t/a/b/deep")
			if text != "deep" {
				t.Errorf("%s: the directory's file has %q", operation, text)
			}
			if got := len(m.failures); got != 1 {
				t.Errorf("%s: %d failures were reported: %+v", operation, got, m.failures)
			}
		}
	}
}

// The root is left last. That it cannot be is no different from any other directory.
func TestRootThatCannotBeLeft(t *testing.T) {
	m := newMeeting(t, newTreeSource(t), newTarget())
	m.onReceiver(failing("utimes t"))
	m.mustFailInPart(".")
}

// With --fail-fast a directory that cannot be left ends the transfer on both sides.
func TestDirectoryThatCannotBeLeftEndsAFastTransfer(t *testing.T) {
	m := newMeeting(t, newTreeSource(t), newTarget())
	m.sender.config.FailFast = true
	m.onReceiver(failing("utimes b"))
	m.run()
	mustBe(t, m.receiver.err, unix.EIO)
	if !abortedWith(m.sender.err, wire.AbortTarget) {
		t.Errorf("the sender ended with %v", m.sender.err)
	}
}

// A directory that cannot be created fails with everything in it, and the rest arrives.
func TestDirectoryThatCannotBeCreated(t *testing.T) {
	m := newMeeting(t, newTreeSource(t), newTarget())
	m.onReceiver(failing("mkdir a"))
	m.mustFailInPart("a", "a/b", "a/b/deep", "a/empty", "a/large", "a/link", "a/slot")
	if text, _ := m.to.Get("/dst/t/small"); text != "small" {
		t.Errorf("another file has %q", text)
	}
	for _, f := range m.receiver.files {
		if f.Action == job.Failed && f.Path != "a" && !strings.Contains(f.Err.Error(), "could not be created") {
			t.Errorf("%s: %v", f.Path, f.Err)
		}
	}
}

// What cannot be created fails alone: a small file, a large one, a symlink, and a hard link.
func TestEntriesThatCannotBeCreated(t *testing.T) {
	for path, operation := range map[string]string{
		"small": "name small", "a/link": "symlink .link.dma-copy-new", "z/same": "link same",
		"a/large": "chmod .large.dma-copy-part",
	} {
		t.Run(path, func(t *testing.T) {
			m := newMeeting(t, newTreeSource(t), newTarget())
			m.sender.config.HardLinks, m.receiver.config.HardLinks = true, true
			faulty := m.onReceiver(failing(operation))
			want := []string{path}
			if path == "small" {
				want = append(want, "z/same") // which is another name of it
			}
			m.mustFailInPart(want...)
			if !faulty.Fired() {
				t.Errorf("%q is not among\n%s", operation, strings.Join(faulty.Trace(), "\n"))
			}
		})
	}
}
