package service

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// MakeDirRequest is the content of a MKDIR: a directory to create below a share.
type MakeDirRequest struct {
	Place   Place // with a path
	Parents bool  // directories above it that are missing are created, too, and it may exist already
}

func (m *MakeDirRequest) fields(c wire.Codec) wire.Codec {
	var none byte
	c.Zeros(3)
	c.Bit(&m.Parents, "parents")
	m.Place.fields(&c, &none, 0)
	c.Verify(m.check)
	return c
}

func (m MakeDirRequest) check() error {
	if m.Place.Path == "" {
		return wire.Malformed(wire.TypeMakeDir, "a share itself")
	}
	return m.Place.check(wire.TypeMakeDir)
}

// MakeDir appends a MKDIR. It is called on the command in Ready. It fails with ErrMalformed, ErrTooLarge or
// ErrOutOfOrder.
func (s *Session) MakeDir(dst []byte, m MakeDirRequest) ([]byte, error) {
	msg := wire.Encode(dst, wire.TypeMakeDir, &m, (*MakeDirRequest).fields)
	return s.send(dst, msg, func() error { return s.beginMakeDir(m) })
}

func (s *Session) beginMakeDir(m MakeDirRequest) error {
	if err := m.check(); err != nil {
		return err
	}
	s.machine.State = Making
	return nil
}

// Made appends a MADE. It is called on the daemon after MakeDirRequested. It fails with ErrOutOfOrder.
func (s *Session) Made(dst []byte) ([]byte, error) {
	return s.send(dst, wire.AppendEmpty(dst, wire.TypeMade), func() error {
		s.machine.State = Ready
		return nil
	})
}

func (s *Session) receiveMakeDir(msg []byte) (Step, error) {
	m, err := receive(msg, wire.TypeMakeDir, (*MakeDirRequest).fields, s.beginMakeDir)
	return Step{Event: MakeDirRequested, MakeDir: m}, err
}

func (s *Session) receiveMade(msg []byte) (Step, error) {
	if err := wire.DecodeEmpty(msg, wire.TypeMade); err != nil {
		return Step{}, err
	}
	s.machine.State = Ready
	return Step{Event: PeerMade}, nil
}
