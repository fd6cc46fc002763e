package native

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Window is the memory through which content is transferred: Plan.Depth slots of Plan.Chunk bytes each.
type Window struct {
	Address    uint64 // on PathDMA and PathRMA of the first slot in its owner's address space; otherwise 0
	Length     uint64 // bytes
	Descriptor []byte // never empty; see Plan.Path

	// The Descriptor is opaque on PathDMA, from doca_mmap_export_pci. On PathFast it is of AppendConsumers, on PathTLS
	// and PathTCP of AppendLanes, and on PathMessages and PathRMA of AppendWorkers.
}

// DecodeWindow decodes a WINDOW and copies its descriptor. It fails with ErrMalformed.
func DecodeWindow(msg []byte) (Window, error) {
	w, err := wire.Decode(msg, wire.TypeWindow, (*Window).fields)
	w.Descriptor = bytes.Clone(w.Descriptor)
	return w, err
}

func (w *Window) fields(c wire.Codec) wire.Codec {
	c.Zeros(4)
	wire.Integer(&c, &w.Address)
	wire.Integer(&c, &w.Length)
	descriptor := wire.Length[uint32](&c, len(w.Descriptor))
	c.Zeros(4)
	c.Octets(&w.Descriptor, descriptor)
	c.Verify(w.checkRange)
	return c
}

// check checks everything, by the plan.
func (w Window) check(p Plan) error {
	if err := w.checkRange(); err != nil {
		return err
	}
	if due := p.WindowLength(); w.Length != due {
		return wire.Malformed(wire.TypeWindow, "%d bytes instead of %d", w.Length, due)
	}
	if p.Path.Pushed() && w.Address != 0 {
		return wire.Malformed(wire.TypeWindow, "address %#x on the path %s", w.Address, p.Path)
	}
	return w.checkDescriptor(p)
}

// checkDescriptor checks what is not opaque.
func (w Window) checkDescriptor(p Plan) error {
	var err error
	switch p.Path {
	case wire.PathFast:
		_, err = ConsumerIDs(w.Descriptor, p.Depth)
	case wire.PathTLS, wire.PathTCP:
		_, _, err = Lanes(w.Descriptor, p.Depth)
	case wire.PathMessages, wire.PathRMA:
		_, err = DecodeWorkers(w.Descriptor, p.Path, p.Depth)
	}
	return err
}

// AppendConsumers appends the descriptor of a window on PathFast: the ids of the receiver's consumers. The sender's
// producers send slot s to number s modulo the number of consumers.
func AppendConsumers(dst []byte, ids []uint32) []byte {
	for _, id := range ids {
		dst = binary.BigEndian.AppendUint32(dst, id)
	}
	return dst
}

// ConsumerIDs returns the ids in the descriptor of a window on PathFast: at least one and at most one for each slot,
// all different. It fails with ErrMalformed.
func ConsumerIDs(descriptor []byte, depth uint32) ([]uint32, error) {
	if len(descriptor)%4 != 0 || len(descriptor) == 0 || len(descriptor)/4 > int(depth) {
		return nil, wire.Malformed(wire.TypeWindow, "%d bytes of consumers for %d slots", len(descriptor), depth)
	}
	var ids []uint32
	for ; len(descriptor) > 0; descriptor = descriptor[4:] {
		id := binary.BigEndian.Uint32(descriptor)
		if slices.Contains(ids, id) {
			return nil, wire.Malformed(wire.TypeWindow, "consumer %d twice", id)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (w Window) checkRange() error {
	switch {
	case len(w.Descriptor) == 0:
		return wire.Malformed(wire.TypeWindow, "the descriptor is empty")
	case w.Length == 0:
		return wire.Malformed(wire.TypeWindow, "the window is empty")
	case w.Address > math.MaxUint64-(w.Length-1):
		return wire.Malformed(wire.TypeWindow, "%d bytes at address %#x wrap around", w.Length, w.Address)
	}
	return nil
}
