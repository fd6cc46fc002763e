package service

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// MakeDirRequest is the content of a MKDIR: a directory to create below a share.
type MakeDirRequest struct {
	Place   Place // with a path
	Parents bool  // directories above it that are missing are created, too, and it may exist already
}

// AppendMakeDir appends a MKDIR without checking it.
func AppendMakeDir(dst []byte, m MakeDirRequest) []byte {
	return wire.Encode(dst, wire.TypeMakeDir, &m, (*MakeDirRequest).fields)
}

// DecodeMakeDir decodes a MKDIR. It fails with ErrMalformed.
func DecodeMakeDir(msg []byte) (MakeDirRequest, error) {
	return wire.Decode(msg, wire.TypeMakeDir, (*MakeDirRequest).fields)
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

// AppendMade appends a MADE.
func AppendMade(dst []byte) []byte { return wire.AppendEmpty(dst, wire.TypeMade) }

// DecodeMade decodes a MADE. It fails with ErrMalformed.
func DecodeMade(msg []byte) error { return wire.DecodeEmpty(msg, wire.TypeMade) }

// MakeDir appends a MKDIR. It is called on the command in Ready. It fails with ErrMalformed, ErrTooLarge or
// ErrOutOfOrder.
func (s *Session) MakeDir(dst []byte, m MakeDirRequest) ([]byte, error) {
	return s.send(dst, AppendMakeDir(dst, m), func() error { return s.beginMakeDir(m) })
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
	return s.send(dst, AppendMade(dst), func() error {
		s.machine.State = Ready
		return nil
	})
}

func (s *Session) receiveMakeDir(msg []byte) (Step, error) {
	m, err := DecodeMakeDir(msg)
	if err == nil {
		err = s.beginMakeDir(m)
	}
	return Step{Event: MakeDirRequested, MakeDir: m}, err
}

func (s *Session) receiveMade(msg []byte) (Step, error) {
	if err := DecodeMade(msg); err != nil {
		return Step{}, err
	}
	s.machine.State = Ready
	return Step{Event: PeerMade}, nil
}
