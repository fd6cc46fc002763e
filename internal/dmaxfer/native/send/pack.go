package send

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// This file is the life of a small file, which is sent with others in one slot, from the queue to its result:
//
//	feed ─► fillPack ─► checkPack ─► sendPack ─► Sender.decide

// fillPack reads whole files into a slot.
func (f *feed) fillPack(ctx context.Context, pack []*entry, buffer []byte, unit *pump.Unit) (filled bool, err error) {
	used := int64(0)
	filling := make([]*entry, 0, len(pack))
	for _, e := range pack {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		f.t.Params.Config.Progress.Touch()
		if !e.acquire() {
			continue
		}
		err := f.readWhole(ctx, e, buffer[used:used+e.size])
		e.release()
		if err != nil {
			if err := f.cannotSend(e, err); err != nil {
				return false, err
			}
			continue
		}
		unit.Pack.Files = append(unit.Pack.Files, native.PackedFile{
			Entry: e.number, Position: uint32(used), Length: uint32(e.size),
		})
		filling = append(filling, e)
		used = aligned(used + e.size)
	}
	unit.Ref = filling
	return len(filling) > 0, nil
}

// readWhole reads a small file, which must not change meanwhile.
func (f *feed) readWhole(ctx context.Context, e *entry, buffer []byte) error {
	c, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if f.t.Params.Plan.AllowChanging {
		return c.source.ReadAt(buffer, 0)
	}
	return c.source.ReadWhole(buffer)
}

// checkPack compares what was read of each file with what the user allows.
func (f *feed) checkPack(unit *pump.Unit) error {
	by := f.t.Params.Plan.Digest
	for i, e := range unit.Ref.([]*entry) {
		sum, err := digest.NewSum(by, unit.Pack.Files[i].Digest[:by.Size()])
		if err != nil {
			return err
		}
		if err := checkContent(f.t, e.size, sum); err != nil {
			return err
		}
	}
	return nil
}

// sendPack sends the list of the files in a slot. The receiver commits them when it has checked their digests.
func (t *transmitter) sendPack(ctx context.Context, unit *pump.Unit) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message, err := t.of.Session.Pack(t.of.Message, unit.Pack)
	if err != nil {
		return err
	}
	var sent []*entry
	if unit.Pack.Attempt == 0 {
		sent = unit.Ref.([]*entry)
	}
	return t.sendWhole(ctx, message, sent...)
}

// withdraw removes what must not be sent any more, because its entry has been decided, from a unit that is about to
// be announced. It reports whether nothing is left.
func withdraw(unit *pump.Unit) (empty bool) {
	if !unit.Packed() {
		return unit.Ref.(*entry).isDecided()
	}
	entries := unit.Ref.([]*entry)
	kept := 0
	for i, e := range entries {
		if !e.isDecided() {
			entries[kept], unit.Pack.Files[kept] = e, unit.Pack.Files[i]
			kept++
		}
	}
	unit.Ref, unit.Pack.Files = entries[:kept], unit.Pack.Files[:kept]
	return kept == 0
}
