package native

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// replies are what the lanes and jobs of a receiver have for the sender. Any goroutine of the transfer adds to them;
// the owner of the transfer calls flush.
type replies struct {
	*common
	box     *pump.Batch[pump.Reply]
	flushed func() // is called after each flush

	acks     []negotiate.Ack
	answers  []negotiate.Answer
	results  []uint32
	failures []failure
}

// failure is an entry that has failed here.
type failure struct {
	entry uint32
	err   error
	late  bool // a directory that has been reported as committed
}

func newReplies(c *common, flushed func()) *replies {
	most := cap(c.message)
	return &replies{
		common: c, flushed: flushed,
		box:     pump.NewBatch[pump.Reply](2*int(c.terms.plan.Depth), c.terms.batch()),
		acks:    make([]negotiate.Ack, 0, negotiate.MaxAcks(most)),
		answers: make([]negotiate.Answer, 0, negotiate.MaxAnswers(most)),
		results: make([]uint32, 0, negotiate.MaxResults(most)),
	}
}

func (r *replies) answer(e *arriving, a negotiate.Answer) {
	a.Entry = e.number
	r.box.Add(pump.Reply{Other: a})
}

// committed adds the results of entries.
func (r *replies) committed(numbers []uint32) { r.box.Add(pump.Reply{Other: numbers}) }

func (r *replies) failed(f failure) { r.box.Add(pump.Reply{Other: f}) }

// hurry has sent soon what there is for the peer.
func (r *replies) hurry() {
	r.box.Flush()
	r.box.Call()
}

// flush sends everything. Acknowledgements come first: the result of a file follows that of its last chunk.
func (r *replies) flush(ctx context.Context) error {
	replies := r.box.Take()
	r.acks = r.acks[:0]
	for i := range replies {
		if replies[i].Other == nil {
			r.acks = append(r.acks, replies[i].Ack)
		}
	}
	if err := sendList(ctx, r.link, r.message, negotiate.MaxAcks(cap(r.message)), r.acks, r.session.Acks); err != nil {
		return err
	}
	r.answers, r.results = r.answers[:0], r.results[:0]
	r.failures = r.failures[:0]
	for i := range replies {
		switch reply := replies[i].Other.(type) {
		case negotiate.Answer:
			r.answers = append(r.answers, reply)
		case []uint32:
			r.results = append(r.results, reply...)
		case failure:
			r.failures = append(r.failures, reply)
		}
	}
	if err := r.sendOutcomes(ctx); err != nil {
		return err
	}
	r.flushed()
	return nil
}

func (r *replies) sendOutcomes(ctx context.Context) error {
	most := cap(r.message)
	if r.session.State() == negotiate.Cancelling {
		r.answers = r.answers[:0] // a sender that has given up wants none
	}
	err := sendList(ctx, r.link, r.message, negotiate.MaxAnswers(most), r.answers, r.session.Answers)
	if err != nil {
		return err
	}
	err = sendList(ctx, r.link, r.message, negotiate.MaxResults(most), r.results, r.session.Results)
	if err != nil {
		return err
	}
	for _, f := range r.failures {
		if !f.late && !r.session.MayFail(f.entry) {
			continue // the sender has failed it, too
		}
		message, err := r.session.Fail(r.message, negotiate.Failure{
			Entry: f.entry, Code: r.link.code(f.err), Text: f.err.Error(),
		})
		if err != nil {
			return err
		}
		if err := r.link.send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}
