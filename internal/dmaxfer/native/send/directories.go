package send

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// maxPast is how many directories a sender remembers after the last entry in them, in case the receiver fails to set
// their attributes.
const maxPast = 4 * native.MaxOpen

// directories has the directories that may still fail although the receiver has created them: their attributes are set
// after all of their content. Their outcome is therefore reported late, once for each. A directory that fails when
// maxPast others have come after its last entry is reported twice, and then without a path.
//
//	announced ─► decided ─┬─► failed
//	                      └─► finish: copied, or unchanged
type directories struct {
	t    *role.Transfer
	open []*entry // that contain the entry announced last; by depth
	past []*entry // that contain no further entry, in the order in which they were left
}

// announced notes an entry. Only directories are remembered.
func (d *directories) announced(e *entry, depth int) {
	for len(d.open) > depth {
		last := len(d.open) - 1
		d.past = append(d.past, d.open[last])
		d.open = d.open[:last]
	}
	for len(d.past) > maxPast {
		d.succeed(d.past[0])
		d.past = d.past[1:]
	}
	if e.kind == wire.EntryDirectory {
		d.open = append(d.open, e)
	}
}

// failed reports that a directory has failed after it was created.
func (d *directories) failed(number uint32, err error) {
	path := ""
	if e := d.find(number); e != nil {
		path, e.late = e.path, false
	}
	d.t.Stats.FailedLate(number, path, err)
}

// finish reports what has not failed by the end of the transfer.
func (d *directories) finish() {
	for _, e := range append(d.past, d.open...) {
		d.succeed(e)
	}
	d.open, d.past = nil, nil
}

func (d *directories) succeed(e *entry) {
	if e.late {
		e.late = false
		d.t.Stats.Report(job.FileDone{Path: e.path, Kind: e.kind, Action: e.action})
	}
}

// find returns a directory by its number, or nil.
func (d *directories) find(number uint32) *entry {
	for _, list := range [...][]*entry{d.open, d.past} {
		if i := slices.IndexFunc(list, func(e *entry) bool { return e.number == number }); i >= 0 {
			return list[i]
		}
	}
	return nil
}
