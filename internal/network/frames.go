package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// frameHeader is the size of what comes before the content of a slot: its number and its length, 4 bytes each.
const frameHeader = 8

// frameOverhead is what a frame adds to its content where bytes are counted that have the same keys: its header is a
// record of its own, and each record counts as another block, and is rounded up to whole ones, of 16 bytes.
const frameOverhead = 64

// writeFrame sends the content of a slot.
func (l *lane) writeFrame(slot uint32, content []byte) error {
	var header [frameHeader]byte
	binary.BigEndian.PutUint32(header[:], slot)
	binary.BigEndian.PutUint32(header[4:], uint32(len(content)))
	if l.tls == nil {
		return l.writePlain(header[:], content)
	}
	if _, err := l.tls.Write(header[:]); err != nil {
		return err
	}
	for rest := content; len(rest) > 0; {
		n, err := l.tls.Write(rest[:min(len(rest), writeAtOnce)])
		if err != nil {
			return err
		}
		l.sent.Add(int64(n))
		rest = rest[n:]
	}
	return l.socket.flush()
}

// countedAtOnce is how many bytes of content are sent outside of TLS before they are counted.
const countedAtOnce = 512 << 10

// writePlain sends a frame outside of TLS. Header and content go to the kernel with one call, and are not copied
// before.
func (l *lane) writePlain(header, content []byte) error {
	parts := net.Buffers{header}
	for rest := content; len(rest) > 0; {
		part := rest[:min(len(rest), countedAtOnce)]
		parts = append(parts, part)
		if _, err := parts.WriteTo(l.socket.tcp()); err != nil { // and empties parts
			return err
		}
		l.sent.Add(int64(len(part)))
		rest = rest[len(part):]
	}
	return nil
}

// readFrame receives the content of a slot, into the memory that place returns for it, and counts what has arrived.
func (l *lane) readFrame(
	place func(slot, length uint32) ([]byte, error), arrived *atomic.Int64,
) (slot uint32, content []byte, err error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(l.content, header[:]); err != nil {
		return 0, nil, lost(err)
	}
	slot = binary.BigEndian.Uint32(header[:])
	if content, err = place(slot, binary.BigEndian.Uint32(header[4:])); err != nil {
		return 0, nil, err
	}
	for rest := content; len(rest) > 0; {
		n, err := l.content.Read(rest)
		arrived.Add(int64(n))
		if rest = rest[n:]; err != nil && len(rest) > 0 {
			return 0, nil, lost(err)
		}
	}
	return slot, content, nil
}

// lost returns the error for a data connection that has failed: a comch.ErrPeerLost.
func lost(err error) error {
	if _, is := errors.AsType[*job.Defect](err); is {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: a data connection has ended", comch.ErrPeerLost)
	}
	return fmt.Errorf("%w: a data connection failed: %s", comch.ErrPeerLost, quote.Bare(err.Error()))
}
