package receive

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// replies are what lanes and jobs have for the sender. Any goroutine of the transfer adds to them; the owner of the
// transfer calls flush.
type replies struct {
	t   *role.Transfer
	box *pump.Batch[pump.Reply]

	acks     []native.Ack
	answers  []native.Answer
	results  []uint32
	failures []failure
}

// failure is an entry that has failed here.
type failure struct {
	entry uint32
	err   error
	late  bool // a directory that has been reported as committed
}

func newReplies(t *role.Transfer) *replies {
	most := cap(t.Message)
	return &replies{
		t:       t,
		box:     pump.NewBatch[pump.Reply](2*int(t.Params.Plan.Depth), t.Params.Batch()),
		acks:    make([]native.Ack, 0, native.MaxAcks(most)),
		answers: make([]native.Answer, 0, native.MaxAnswers(most)),
		results: make([]uint32, 0, native.MaxResults(most)),
	}
}

func (r *replies) answer(e *entry, a native.Answer) {
	a.Entry = e.number
	r.box.Add(pump.Reply{Other: a})
}

// committed adds the results of entries.
func (r *replies) committed(numbers []uint32) { r.box.Add(pump.Reply{Other: numbers}) }

func (r *replies) failed(f failure) { r.box.Add(pump.Reply{Other: f}) }

// requestFlush has the owner send soon what there is for the peer.
func (r *replies) requestFlush() {
	r.box.Flush()
	r.box.Call()
}

// flush sends everything. Acknowledgements come first: the result of a file follows the one of its last chunk.
func (r *replies) flush(ctx context.Context) error {
	replies := r.box.Take()
	r.acks = r.acks[:0]
	for i := range replies {
		if replies[i].Other == nil {
			r.acks = append(r.acks, replies[i].Ack)
		}
	}
	most := cap(r.t.Message)
	if err := sendList(ctx, r.t, native.MaxAcks(most), r.acks, r.t.Session.Acks); err != nil {
		return err
	}
	r.answers, r.results = r.answers[:0], r.results[:0]
	r.failures = r.failures[:0]
	for i := range replies {
		switch reply := replies[i].Other.(type) {
		case native.Answer:
			r.answers = append(r.answers, reply)
		case []uint32:
			r.results = append(r.results, reply...)
		case failure:
			r.failures = append(r.failures, reply)
		}
	}
	return r.sendOutcomes(ctx, most)
}

func (r *replies) sendOutcomes(ctx context.Context, most int) error {
	if r.t.Session.State() == native.Cancelling {
		r.answers = r.answers[:0] // a sender that has given up wants none
	}
	if err := sendList(ctx, r.t, native.MaxAnswers(most), r.answers, r.t.Session.Answers); err != nil {
		return err
	}
	if err := sendList(ctx, r.t, native.MaxResults(most), r.results, r.t.Session.Results); err != nil {
		return err
	}
	for _, f := range r.failures {
		if !f.late && !r.t.Session.MayFail(f.entry) {
			continue // the sender has failed it, too
		}
		message, err := r.t.Session.Fail(r.t.Message, native.Failure{
			Entry: f.entry, Code: r.t.Link.Code(f.err), Text: f.err.Error(),
		})
		if err != nil {
			return err
		}
		if err := r.t.Link.Send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// sendList sends a list in as many messages as it takes; encode is a call of the session.
func sendList[T any](ctx context.Context,
	t *role.Transfer, most int, items []T, encode func([]byte, []T) ([]byte, error),
) error {
	for len(items) > 0 {
		n := min(len(items), most)
		message, err := encode(t.Message, items[:n])
		if err != nil {
			return err
		}
		if err := t.Link.Send(ctx, message); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}
