package network

import "net"

// plainFrames writes frames to the socket of a data connection, outside of TLS. Header and content go to the kernel
// with one call, and are not copied before. It reuses its memory, and is not safe for concurrent use.
type plainFrames struct {
	socket *net.TCPConn
	header [frameHeader]byte
	parts  [2][]byte
	rest   net.Buffers // of parts: what is not sent yet
}

func (p *plainFrames) write(slot uint32, content []byte) error {
	putHeader(&p.header, slot, content)
	p.parts = [2][]byte{p.header[:], content}
	p.rest = p.parts[:]
	_, err := p.rest.WriteTo(p.socket)
	return err
}
