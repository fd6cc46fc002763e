package native

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// A file that is there already, but was not flushed when it was written, is made as durable as the transfer promises.
func TestUnchangedFileIsFlushed(t *testing.T) {
	from, to := disktest.NewMemory("/"), newTarget()
	from.Put("/src", "content")
	to.Record()
	first := newMeeting(t, from, to)
	first.config(func(c *Config) { c.Durability = negotiate.DurabilityNone })
	first.mustSucceed()
	if !lost(to) {
		t.Fatal("the file was flushed although the transfer did not promise it")
	}
	again := newMeeting(t, from, to)
	again.config(func(c *Config) { c.Durability = negotiate.DurabilityFull })
	again.receiver.search.Overwrite = true
	again.mustSucceed()
	if !again.receiver.summary.UpToDate || again.receiver.summary.Durability != negotiate.DurabilityFull {
		t.Errorf("summary: %+v", again.receiver.summary)
	}
	if lost(to) {
		t.Error("the file does not survive a loss of power")
	}
}

// A transfer that only compares does not promise that what is there is durable.
func TestComparedFileIsNotFlushed(t *testing.T) {
	from, to := disktest.NewMemory("/"), newTarget()
	from.Put("/src", "content")
	to.Put("/dst/t", "content")
	m := newMeeting(t, from, to)
	m.config(func(c *Config) { c.Durability = negotiate.DurabilityFull })
	m.mustSucceed()
	if s := m.sender.summary; !s.UpToDate || s.Durability != negotiate.DurabilityNone {
		t.Errorf("summary: %+v", s)
	}
}

// Both sides of a dry run know the size of the file that would be copied.
func TestDryRunOfAFile(t *testing.T) {
	from := disktest.NewMemory("/")
	from.Put("/src", "content")
	m := newMeeting(t, from, newTarget())
	m.sender.config.DryRun = true
	m.mustSucceed()
	if s := m.receiver.summary; s.Size != int64(len("content")) || s.UpToDate {
		t.Errorf("summary: %+v", s)
	}
}

// config changes the configuration of both sides.
func (m *meeting) config(change func(c *Config)) {
	change(&m.sender.config)
	change(&m.receiver.config)
}

// lost reports whether the target can be gone, or differ, when the power fails after the last operation.
func lost(m *disktest.Memory) bool {
	last := m.Steps() - 1
	for crash := range m.Crashes() {
		if text, found := crash.FS.Get("/dst/t"); crash.Step == last && (!found || text != "content") {
			return true
		}
	}
	return false
}
