package send

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// transmitter sends what the lanes of a sender have for the receiver. The lanes add to box, the owner of the transfer
// calls flush.
type transmitter struct {
	of          *role.Transfer
	acknowledge func([]native.Ack) // frees the slot of a unit that is not sent
	box         *pump.Batch[pump.Announcement]
	records     []native.Record
	ended       bool // the end of a file has been sent
}

func newTransmitter(t *role.Transfer) *transmitter {
	return &transmitter{
		of:      t,
		box:     pump.NewBatch[pump.Announcement](2*int(t.Params.Plan.Depth), t.Params.Batch()),
		records: make([]native.Record, 0, native.MaxRecords(cap(t.Message))),
	}
}

// flush sends everything in its order.
func (t *transmitter) flush(ctx context.Context) error {
	t.records = t.records[:0]
	for _, a := range t.box.Take() {
		var err error
		switch {
		case a.End != nil:
			err = t.sendEnd(ctx, a.End)
		case withdraw(a.Unit):
			t.acknowledge([]native.Ack{{Slot: uint32(a.Unit.Record.Slot)}})
		case a.Unit.Packed():
			err = t.sendPack(ctx, a.Unit)
		default:
			t.records = append(t.records, a.Unit.Record)
			if len(t.records) == cap(t.records) {
				err = t.sendChunks(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
	return t.sendChunks(ctx)
}

func (t *transmitter) sendChunks(ctx context.Context) error {
	if len(t.records) == 0 {
		return nil
	}
	message, err := t.of.Session.Chunks(t.of.Message, t.records)
	if err != nil {
		return err
	}
	t.records = t.records[:0]
	return t.of.Link.Send(ctx, message)
}

// sendWhole sends a message after which the receiver may commit entries. If it were interrupted it would not be known
// whether it was sent.
func (t *transmitter) sendWhole(ctx context.Context, message []byte, entries ...*entry) error {
	for _, e := range entries {
		e.become(sent)
		logEntry(t.of.Params, e).Msg("entry sent")
	}
	return t.of.Link.Send(context.WithoutCancel(ctx), message)
}
