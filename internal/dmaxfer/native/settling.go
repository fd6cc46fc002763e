package native

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// settling has a sender's directories that the receiver has created, but which may still fail: their attributes are set
// after all of their content. Their outcome is therefore reported late, once for each. A directory that fails when
// maxSettling others have come after its last entry is reported twice, and then without a path. The owner of the
// transfer uses it.
type settling struct {
	*common
	open []*settlingDirectory // that contain the entry announced last; by depth
	past []*settlingDirectory // that contain no further entry, in the order in which they were left
}

// settlingDirectory is an announced directory.
type settlingDirectory struct {
	number uint32
	path   string
	action job.Action
	exists bool // the receiver has created it, and its outcome is not reported yet
}

// announced notes an entry. Only directories are remembered.
func (s *settling) announced(o *outgoing, depth int) {
	for len(s.open) > depth {
		last := len(s.open) - 1
		s.past = append(s.past, s.open[last])
		s.open = s.open[:last]
	}
	for len(s.past) > maxSettling {
		s.succeed(s.past[0])
		s.past = s.past[1:]
	}
	if o.kind == negotiate.EntryDirectory {
		o.directory = &settlingDirectory{number: o.number, path: o.path}
		s.open = append(s.open, o.directory)
	}
}

// decided notes that the receiver has created the directory, or had it.
func (d *settlingDirectory) decided(action job.Action) { d.action, d.exists = action, true }

// failed reports that a directory has failed after it was created.
func (s *settling) failed(number uint32, err error) {
	done := job.FileDone{Kind: negotiate.EntryDirectory, Action: job.Failed, Err: err}
	if d := s.find(number); d != nil {
		done.Path, d.exists = d.path, false
	}
	s.terms.debug(number, done.Path, done.Kind).Err(err).Msg(decisions[job.Failed])
	s.account.report(done)
}

// finish reports what has not failed by the end of the transfer.
func (s *settling) finish() {
	for _, d := range append(s.past, s.open...) {
		s.succeed(d)
	}
	s.open, s.past = nil, nil
}

func (s *settling) succeed(d *settlingDirectory) {
	if d.exists {
		d.exists = false
		s.account.report(job.FileDone{Path: d.path, Kind: negotiate.EntryDirectory, Action: d.action})
	}
}

// find returns a directory by its number, or nil.
func (s *settling) find(number uint32) *settlingDirectory {
	for _, list := range [...][]*settlingDirectory{s.open, s.past} {
		if i := slices.IndexFunc(list, func(d *settlingDirectory) bool { return d.number == number }); i >= 0 {
			return list[i]
		}
	}
	return nil
}
