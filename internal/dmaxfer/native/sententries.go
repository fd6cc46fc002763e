package native

import (
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// sentEntries are the entries that a sender has announced and the receiver has not decided yet. The owner of the
// transfer uses it.
type sentEntries struct {
	*common
	table      [negotiate.MaxOpen]*outgoing // by number
	announced  uint32
	settling   settling
	heldThere  int64 // bytes of extended attributes of directories
	unanswered int   // files
	owed       int64 // bytes that the receiver allocates, or flushes before a result
}

func newSentEntries(c *common) *sentEntries {
	return &sentEntries{common: c, settling: settling{common: c}}
}

// add adds an entry that is being announced, and gives it its number.
func (s *sentEntries) add(o *outgoing, depth int) {
	o.number = s.announced
	s.debug(o).Int64("bytes", o.size).Msg("entry planned")
	s.settling.announced(o, depth)
	s.announced++
	s.table[o.number%negotiate.MaxOpen] = o
	o.heldThere = o.heldAfterwards()
	s.heldThere += o.heldThere
	if o.kind == negotiate.EntryFile {
		s.unanswered++
		s.owed += max(o.size, 0)
	}
}

// entry returns an entry that is not decided yet, as the session knows it too, or nil.
func (s *sentEntries) entry(number uint32) *outgoing {
	if o := s.table[number%negotiate.MaxOpen]; o != nil && o.number == number {
		return o
	}
	return nil
}

// answered notes that the receiver's answer for a file is final.
func (s *sentEntries) answered(o *outgoing) {
	if !o.answered {
		o.answered = true
		s.unanswered--
		s.owed -= max(o.size, 0)
	}
}

// ended notes that the receiver may flush and commit a file.
func (s *sentEntries) ended(o *outgoing) {
	s.debug(o).Msg("entry sent")
	o.flushing = true
	s.owed += max(o.size, 0)
}

// decide ends an entry. What lanes still have of it is not sent any more.
func (s *sentEntries) decide(o *outgoing, action job.Action, err error) {
	s.table[o.number%negotiate.MaxOpen] = nil
	s.heldThere -= o.heldThere
	if o.kind == negotiate.EntryFile {
		s.answered(o)
	}
	if o.flushing {
		s.owed -= max(o.size, 0)
	}
	o.decide()
	s.debug(o).Err(err).Msg(decisions[action])
	if err == nil && s.terms.failsLate(o.kind) {
		s.account.decidedEntry()
		o.directory.decided(action)
	} else {
		s.account.decided(job.FileDone{
			Path: o.path, Kind: o.kind, Bytes: o.size, Action: action, Change: o.change, Err: err,
		})
	}
}

// close releases the entries when the transfer has ended.
func (s *sentEntries) close() {
	for _, o := range s.table {
		if o != nil {
			o.decide()
		}
	}
}
