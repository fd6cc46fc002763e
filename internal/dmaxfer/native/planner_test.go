package native

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// found is what a receiver has at the path of a file with the content "source", mode 0640 and time 1000.
type found string

const (
	missing    found = "missing"
	same       found = "same"
	otherSize  found = "other size"
	otherTime  found = "other time" // and the same content
	otherMode  found = "other mode" // and the same content
	otherBytes found = "other bytes"
	changed    found = "other bytes and time"
	symlink    found = "symlink"
	subtree    found = "directory"
)

var allFound = []found{missing, same, otherSize, otherTime, otherMode, otherBytes, changed, symlink, subtree}

// put creates the file.
func (f found) put(t *testing.T, m *disktest.Memory, path string) {
	t.Helper()
	text, mode, seconds := "source", uint32(0o640), int64(1000)
	switch f {
	case missing:
		return
	case symlink:
		m.Symlink("source", path, 1000)
		return
	case otherSize:
		text = "longer than the source"
	case otherTime:
		seconds = 2000
	case otherMode:
		mode = 0o600
	case otherBytes:
		text = "target"
	case changed:
		text, seconds = "target", 2000
	}
	m.Put(path, text)
	setAttributes(t, m, path, mode, seconds)
}

// decision is what a receiver does about a file: its answers, and what both sides report of it.
type decision struct {
	answers string // "need", "have", "sum", in their order
	action  job.Action
	differs bool  // the transfer fails because both sides have it
	failed  error // the entry fails
}

var (
	need      = decision{answers: "need", action: job.Copied}
	had       = decision{answers: "have", action: job.Unchanged}
	compared  = decision{answers: "sum have", action: job.Unchanged}
	corrected = decision{answers: "sum need", action: job.Copied}
	modeSet   = decision{answers: "have", action: job.Updated}
	timeSet   = decision{answers: "sum have", action: job.Updated}
	wouldMode = decision{answers: "have", action: job.WouldUpdate}
	wouldTime = decision{answers: "sum have", action: job.WouldUpdate}
	planned   = decision{answers: "need", action: job.WouldCopy}
	checked   = decision{answers: "sum need", action: job.WouldCopy}
	inTheWay  = decision{action: job.Failed, failed: disk.ErrTarget}
	differed  = decision{differs: true}
	refused   = decision{answers: "sum", differs: true}
)

// wish is what the user of both sides wants.
type wish struct {
	overwrite, checksum, dryRun bool
	mirror                      bool // what is in the way is removed before the copy that is planned
}

func (w wish) of(m *meeting) {
	m.receiver.search.Overwrite = w.overwrite
	m.receiver.config.Checksum, m.receiver.config.DryRun = w.checksum, w.dryRun
	if w.mirror {
		m.receiver.config.Mirror = &tree.Mirror{}
	}
}

// What a receiver decides about a file of a tree by what it has in its place.
func TestDecisionsAboutFilesOfATree(t *testing.T) {
	overwrite, checksum := wish{overwrite: true}, wish{overwrite: true, checksum: true}
	dryRun, dryChecksum := wish{overwrite: true, dryRun: true}, wish{overwrite: true, checksum: true, dryRun: true}
	dryMirror := wish{overwrite: true, dryRun: true, mirror: true}
	compare, compareSums := wish{}, wish{checksum: true}
	for _, c := range []struct {
		wish wish
		want map[found]decision
	}{
		{overwrite, map[found]decision{
			missing: need, same: had, otherSize: need, otherTime: timeSet, otherMode: modeSet, otherBytes: had,
			changed: corrected, symlink: need, subtree: inTheWay,
		}},
		{checksum, map[found]decision{
			missing: need, same: compared, otherSize: need, otherTime: timeSet, otherMode: timeSet,
			otherBytes: corrected, changed: corrected, symlink: need, subtree: inTheWay,
		}},
		{dryRun, map[found]decision{
			missing: planned, same: had, otherSize: planned, otherTime: wouldTime, otherMode: wouldMode,
			otherBytes: had, changed: checked, symlink: planned, subtree: inTheWay,
		}},
		{dryMirror, map[found]decision{
			missing: planned, same: had, otherSize: planned, otherTime: wouldTime, otherMode: wouldMode,
			otherBytes: had, changed: checked, symlink: planned, subtree: planned,
		}},
		{dryChecksum, map[found]decision{
			missing: planned, same: compared, otherSize: planned, otherTime: wouldTime, otherMode: wouldTime,
			otherBytes: checked, changed: checked, symlink: planned, subtree: inTheWay,
		}},
		{compare, map[found]decision{
			missing: differed, same: had, otherSize: differed, otherTime: compared, otherMode: compared,
			otherBytes: had, changed: refused, symlink: differed, subtree: differed,
		}},
		{compareSums, map[found]decision{
			missing: differed, same: compared, otherSize: differed, otherTime: compared, otherMode: compared,
			otherBytes: refused, changed: refused, symlink: differed, subtree: differed,
		}},
	} {
		for _, found := range allFound {
			t.Run(fmt.Sprintf("%+v/%s", c.wish, found), func(t *testing.T) {
				m := newFileMeeting(t, found, false)
				c.wish.of(m)
				m.mustDecide("f", c.want[found], c.wish)
			})
		}
	}
}

// newFileMeeting returns a meeting in which the target is there already, with a file or the only file as found.
func newFileMeeting(t *testing.T, found found, single bool) *meeting {
	t.Helper()
	from := disktest.NewMemory("/", "/src")
	path := "/dst/t/f"
	directories := []string{"/", "/dst", "/dst/t"}
	if found == subtree {
		directories = append(directories, "/dst/t/f")
	}
	if single {
		path, directories = "/dst/t", directories[:2]
	}
	to := disktest.NewMemory(directories...)
	from.Put("/src/f", "source")
	setAttributes(t, from, "/src/f", 0o640, 1000)
	m := newMeeting(t, from, to)
	if found != subtree {
		found.put(t, to, path)
	}
	if single {
		m.sender.search.Path = "/src/f"
	}
	return m
}

// mustDecide runs the transfer, and fails the test unless the file is decided and stored as wanted.
func (m *meeting) mustDecide(path string, want decision, w wish) {
	m.t.Helper()
	before := m.target()
	m.run()
	var answers []string
	for _, a := range m.answers {
		if m.receiver.summary.Tree != nil && a.Entry == 0 {
			continue // the directory
		}
		answers = append(answers, map[protocol.AnswerKind]string{
			protocol.AnswerNeed: "need", protocol.AnswerHave: "have", protocol.AnswerSum: "sum",
		}[a.Kind])
	}
	if got := strings.Join(answers, " "); got != want.answers {
		m.t.Errorf("answered %q, want %q", got, want.answers)
	}
	for _, p := range []*party{m.sender, m.receiver} {
		m.mustHaveDecided(p, path, want)
	}
	switch after := m.target(); {
	case want.action == job.Copied && !want.differs && (after != "source" || w.dryRun):
		m.t.Errorf("the target has %q", after)
	case (want.action != job.Copied || want.differs) && after != before:
		m.t.Errorf("the target had %q, and has %q", before, after)
	}
}

// mustHaveDecided fails the test unless one side reports what is wanted.
func (m *meeting) mustHaveDecided(p *party, path string, want decision) {
	m.t.Helper()
	switch {
	case want.differs:
		if !errors.Is(p.err, wire.ErrBothHaveFile) && !abortedWith(p.err, wire.AbortSource) {
			m.t.Errorf("got %v, want that both sides have it", p.err)
		}
		return
	case want.failed != nil:
		mustBe(m.t, p.err, job.ErrSomeFailed)
	default:
		must(m.t, p.err)
	}
	if p.summary.Tree == nil {
		s := &p.summary
		if s.UpToDate != (want.action == job.Unchanged || want.action == job.Updated) {
			m.t.Errorf("up to date: %t", s.UpToDate)
		}
		if s.Updated != (want.action == job.Updated || want.action == job.WouldUpdate) {
			m.t.Errorf("updated: %t", s.Updated)
		}
	} else if got := p.actions()[path]; got != want.action.String() {
		m.t.Errorf("%s, want %s", got, want.action)
	}
}

// abortedWith reports whether the peer ended the transfer with this code, which is that of the other side's error.
func abortedWith(err error, code wire.AbortCode) bool {
	aborted, is := errors.AsType[*protocol.PeerAborted](err)
	return is && aborted.Code == code
}

// target returns what the receiver has in the file's place.
func (m *meeting) target() string {
	for _, path := range []string{"/dst/t/f", "/dst/t"} {
		if text, found := m.to.Get(path); found && text != "" {
			return text
		}
	}
	return ""
}

// What a receiver decides about the only file of a transfer. A target that is not the source's is refused before.
func TestDecisionsAboutASingleFile(t *testing.T) {
	overwrite, checksum := wish{overwrite: true}, wish{overwrite: true, checksum: true}
	regular := []found{missing, same, otherSize, otherTime, otherMode, otherBytes, changed}
	for _, c := range []struct {
		wish wish
		want map[found]decision
	}{
		{overwrite, map[found]decision{
			missing: need, same: had, otherSize: need, otherTime: timeSet, otherMode: modeSet, otherBytes: had,
			changed: corrected,
		}},
		{checksum, map[found]decision{
			missing: need, same: compared, otherSize: need, otherTime: timeSet, otherMode: timeSet,
			otherBytes: corrected, changed: corrected,
		}},
		{wish{overwrite: true, dryRun: true}, map[found]decision{
			missing: planned, same: had, otherSize: planned, otherTime: wouldTime, otherMode: wouldMode,
			otherBytes: had, changed: checked,
		}},
		{wish{}, map[found]decision{ // both have it, so that it is compared by content
			missing: need, same: compared, otherSize: differed, otherTime: compared, otherMode: compared,
			otherBytes: refused, changed: refused,
		}},
	} {
		for _, found := range regular {
			t.Run(fmt.Sprintf("%+v/%s", c.wish, found), func(t *testing.T) {
				m := newFileMeeting(t, found, true)
				c.wish.of(m)
				m.mustDecide("", c.want[found], c.wish)
			})
		}
	}
}

// In a directory that this transfer has created nothing is looked for.
func TestNothingIsLookedForInNewDirectories(t *testing.T) {
	from := disktest.NewMemory("/", "/src", "/src/new")
	from.Put("/src/new/f", "source")
	from.Symlink("f", "/src/new/link", 1000)
	for _, c := range []struct {
		directories []string
		looked      bool
	}{
		{[]string{"/", "/dst"}, false},
		{[]string{"/", "/dst", "/dst/t"}, false},
		{[]string{"/", "/dst", "/dst/t", "/dst/t/new"}, true},
	} {
		to := disktest.NewMemory(c.directories...)
		faulty := disktest.NewFaulty(to, func(int, string, string) *disktest.Fault { return nil })
		m := newMeeting(t, from, to)
		m.receiver.search.FS, m.receiver.search.Overwrite = faulty, true
		m.mustSucceed()
		m.mustHaveSame()
		for _, name := range []string{"f", "link"} {
			if got := slices.Contains(faulty.Trace(), "stat "+name); got != c.looked {
				t.Errorf("%d directories: %s was looked for: %t", len(c.directories), name, got)
			}
		}
	}
}

// linkTo returns a function that creates a symlink in the target, with a time of the given number of seconds.
func linkTo(text string, seconds int64) func(*disktest.Memory) {
	return func(m *disktest.Memory) {
		m.Symlink(text, "/dst/t/l", 1000)
		setLinkModified(m, "/dst/t", seconds)
	}
}

func setLinkModified(m *disktest.Memory, directory string, seconds int64) {
	if dir, err := m.OpenDir(directory); err == nil {
		_ = dir.SetLinkModified("l", disk.Timestamp{Sec: seconds})
		_ = dir.Close()
	}
}

// A symlink is replaced only if it has another text or time, of which only the text counts in a comparison.
func TestDecisionsAboutSymlinks(t *testing.T) {
	const kept, replaced = "unchanged", "copied"
	for name, c := range map[string]struct {
		put    func(m *disktest.Memory)
		action string
		wish   wish
	}{
		"missing":       {func(*disktest.Memory) {}, replaced, wish{overwrite: true}},
		"same":          {linkTo("text", 5), kept, wish{overwrite: true}},
		"other time":    {linkTo("text", 6), replaced, wish{overwrite: true}},
		"other":         {linkTo("other", 5), replaced, wish{overwrite: true}},
		"a file":        {func(m *disktest.Memory) { m.Put("/dst/t/l", "text") }, replaced, wish{overwrite: true}},
		"compared same": {linkTo("text", 6), kept, wish{}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := disktest.NewMemory("/", "/src"), disktest.NewMemory("/", "/dst", "/dst/t")
			from.Symlink("text", "/src/l", 1000)
			setLinkModified(from, "/src", 5)
			c.put(to)
			m := newMeeting(t, from, to)
			c.wish.of(m)
			m.mustSucceed()
			for _, p := range []*party{m.sender, m.receiver} {
				if got := p.actions()["l"]; got != c.action {
					t.Errorf("%s, want %s", got, c.action)
				}
			}
		})
	}
	from, to := disktest.NewMemory("/", "/src"), disktest.NewMemory("/", "/dst", "/dst/t")
	from.Symlink("text", "/src/l", 1000)
	to.Symlink("other", "/dst/t/l", 1000)
	m := newMeeting(t, from, to)
	m.run()
	mustBe(t, m.receiver.err, wire.ErrBothHaveFile)
}

// A dry run reports what would be done and leaves the target as it is, whether it exists or not.
func TestDryRunChangesNothing(t *testing.T) {
	for _, to := range []*disktest.Memory{newTarget(), disktest.NewMemory("/", "/dst", "/dst/t", "/dst/t/a")} {
		_, err := to.Stat("/dst/t")
		exists := err == nil
		var before map[string]string
		if exists {
			to.Put("/dst/t/small", "other")
			before = describeTree(t, to, "/dst/t")
		}
		m := newMeeting(t, newTreeSource(t), to)
		m.sender.config.DryRun, m.receiver.search.Overwrite = true, exists
		m.sender.config.HardLinks, m.receiver.config.HardLinks = true, true
		m.mustSucceed()
		if s := m.receiver.summary; !s.DryRun || s.Tree.Files != 6 || s.Tree.HardLinks != 1 || s.Tree.Symlinks != 2 {
			t.Errorf("%+v %+v", s, s.Tree)
		}
		if exists {
			mustBeSame(t, describeTree(t, to, "/dst/t"), before)
		} else if _, err := to.Stat("/dst/t"); err == nil {
			t.Error("the target was created")
		}
		if n := m.messages[wire.TypeChunks] + m.messages[wire.TypePack]; n != 0 {
			t.Errorf("%d messages with content", n)
		}
		if first := m.receiver.files[0].Path; first != "" {
			t.Errorf("the plan of the receiver begins with %s", first)
		}
	}
}
