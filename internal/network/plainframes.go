package network

import (
	"net"
	"slices"
	"sync/atomic"
	"syscall"
)

// plainFrames writes frames to the socket of a data connection, outside of TLS. Header and content go to the kernel
// with one call, and are not copied before. It reuses its memory, and is not safe for concurrent use.
type plainFrames struct {
	socket *net.TCPConn
	raw    syscall.RawConn
	header [frameHeader]byte
	parts  [2][]byte
	rest   net.Buffers // of parts: what is not sent yet
	sent   *atomic.Int64
}

// begin makes a frame the next one, of which the whole is the rest.
func (p *plainFrames) begin(slot uint32, content []byte) {
	putHeader(&p.header, slot, content)
	p.parts = [2][]byte{p.header[:], content}
	p.rest = p.parts[:]
}

// try sends as much of the rest as the socket takes now, and reports whether that is all of it.
func (p *plainFrames) try() (all bool, err error) {
	n, err := tryWrite(p.raw, p.rest...)
	p.advance(n)
	return len(p.rest) == 0, err
}

// countedAtOnce is how many bytes of content wait for the socket before those that it took are counted.
const countedAtOnce = 512 << 10

// finish sends the rest, and waits until the socket has taken it.
func (p *plainFrames) finish() error {
	for len(p.rest) > 0 {
		some := slices.Clone(p.rest)
		content := &some[len(some)-1]
		*content = (*content)[:min(len(*content), countedAtOnce)]
		n, err := some.WriteTo(p.socket)
		p.advance(int(n))
		if err != nil {
			return err
		}
	}
	return nil
}

// advance drops what was sent from the rest.
func (p *plainFrames) advance(n int) {
	p.sent.Add(int64(n))
	for len(p.rest) > 0 && n >= len(p.rest[0]) {
		n -= len(p.rest[0])
		p.rest = p.rest[1:]
	}
	if len(p.rest) > 0 {
		p.rest[0] = p.rest[0][n:]
	}
}
