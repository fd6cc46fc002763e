package native

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// In the end both sides have found as many entries as were decided, also if the sender could not announce some.
func TestProgressCountsEntries(t *testing.T) {
	for name, operations := range map[string][]string{
		"all announced": nil, "some unreadable": {"stat small", "open b"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeeting(t, newTreeSource(t), newTarget())
			m.sender.search.FS = disktest.NewFaulty(m.from, failing(operations...))
			for _, p := range []*party{m.sender, m.receiver} {
				p.config.Progress = &job.Progress{}
			}
			m.run()
			var bytes [2]int64
			for i, p := range []*party{m.sender, m.receiver} {
				s := p.config.Progress.Sample()
				if !s.Walked || s.FilesFound == 0 || s.Files != s.FilesFound {
					t.Errorf("%d of %d entries, all found: %t", s.Files, s.FilesFound, s.Walked)
				}
				bytes[i] = s.Found
			}
			if bytes[0] != bytes[1] || bytes[0] == 0 {
				t.Errorf("the sender has found %d bytes, the receiver %d", bytes[0], bytes[1])
			}
		})
	}
}

// Entries that the sender cannot announce are counted apart on the receiver, which has no causes for them.
func TestUnreadableEntriesAreCounted(t *testing.T) {
	m := newMeeting(t, newTreeSource(t), newTarget())
	m.sender.search.FS = disktest.NewFaulty(m.from, failing("stat small", "open b"))
	m.run()
	from, to := m.sender.summary.Tree, m.receiver.summary.Tree
	if from.Unreadable != 0 || int64(len(from.Failures)) != from.Failed {
		t.Errorf("sender: %+v", from)
	}
	if to.Unreadable == 0 || to.Unreadable != to.Failed || len(to.Failures) != 0 {
		t.Errorf("receiver: %+v", to)
	}
	if from.Entries() != to.Entries() {
		t.Errorf("the sender counts %d entries, the receiver %d", from.Entries(), to.Entries())
	}
}

// A dry run of a single file tells its size on both sides, and changes nothing.
func TestDryRunOfAFile(t *testing.T) {
	for _, dpuSends := range []bool{false, true} {
		from, to := disktest.NewMemory("/"), newTarget()
		from.Put("/src", "content")
		m := newMeeting(t, from, to)
		m.dpuSends = dpuSends
		m.receiver.config.DryRun = true
		m.mustSucceed()
		for _, p := range []*party{m.sender, m.receiver} {
			if s := p.summary; !s.DryRun || s.UpToDate || s.Size != int64(len("content")) {
				t.Errorf("summary: %+v", s)
			}
		}
		if _, found := to.Get("/dst/t"); found {
			t.Error("the target was created")
		}
	}
}
