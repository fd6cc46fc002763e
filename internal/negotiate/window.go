package negotiate

import (
	"encoding/binary"
	"math"
)

const windowSize = 32 // without the descriptor

// Window is the host's memory through which the file is transferred: Plan.Depth slots of Plan.Chunk bytes each.
type Window struct {
	Address    uint64 // of the first slot in the host's address space
	Length     uint64 // bytes
	Descriptor []byte // opaque, from doca_mmap_export_pci; never empty
}

// AppendWindow appends a WINDOW without checking it.
func AppendWindow(dst []byte, w Window) []byte {
	dst = appendPadding(appendType(dst, TypeWindow), 4)
	dst = binary.BigEndian.AppendUint64(dst, w.Address)
	dst = binary.BigEndian.AppendUint64(dst, w.Length)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(w.Descriptor)))
	dst = appendPadding(dst, 4)
	return append(dst, w.Descriptor...)
}

// DecodeWindow decodes a WINDOW and copies its descriptor. It fails with ErrMalformed.
func DecodeWindow(msg []byte) (Window, error) {
	if err := checkType(msg, TypeWindow, windowSize); err != nil {
		return Window{}, err
	}
	err := firstError(
		checkTail(msg, TypeWindow, windowSize, uint64(binary.BigEndian.Uint32(msg[24:]))),
		checkPadding(TypeWindow, msg[4:8]),
		checkPadding(TypeWindow, msg[28:32]),
	)
	if err != nil {
		return Window{}, err
	}
	w := Window{
		Address:    binary.BigEndian.Uint64(msg[8:]),
		Length:     binary.BigEndian.Uint64(msg[16:]),
		Descriptor: append([]byte(nil), msg[windowSize:]...),
	}
	if err := w.check(); err != nil {
		return Window{}, err
	}
	return w, nil
}

func (w Window) check() error {
	switch {
	case len(w.Descriptor) == 0:
		return malformed(TypeWindow, "the descriptor is empty")
	case w.Length == 0:
		return malformed(TypeWindow, "the window is empty")
	case w.Address > math.MaxUint64-(w.Length-1):
		return malformed(TypeWindow, "%d bytes at address %#x wrap around", w.Length, w.Address)
	}
	return nil
}
