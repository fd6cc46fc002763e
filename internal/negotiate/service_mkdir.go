package negotiate

// MakeDirRequest is the content of a MKDIR: a directory to create below a share.
type MakeDirRequest struct {
	Place   Place // with a path
	Parents bool  // directories above it that are missing are created, too, and it may exist already
}

// AppendMakeDir appends a MKDIR without checking it.
func AppendMakeDir(dst []byte, m MakeDirRequest) []byte {
	return encode(dst, TypeMakeDir, &m, (*MakeDirRequest).fields)
}

// DecodeMakeDir decodes a MKDIR. It fails with ErrMalformed.
func DecodeMakeDir(msg []byte) (MakeDirRequest, error) {
	return decode(msg, TypeMakeDir, (*MakeDirRequest).fields)
}

func (m *MakeDirRequest) fields(c codec) codec {
	var none byte
	c.zeros(3)
	c.bit(&m.Parents, "parents")
	m.Place.fields(&c, &none, 0)
	c.verify(m.check)
	return c
}

func (m MakeDirRequest) check() error {
	if m.Place.Path == "" {
		return malformed(TypeMakeDir, "a share itself")
	}
	return m.Place.check(TypeMakeDir)
}

// AppendMade appends a MADE.
func AppendMade(dst []byte) []byte { return appendEmpty(dst, TypeMade) }

// DecodeMade decodes a MADE. It fails with ErrMalformed.
func DecodeMade(msg []byte) error { return decodeEmpty(msg, TypeMade) }

// MakeDir appends a MKDIR. It is called on the command in Ready. It fails with ErrMalformed, ErrTooLarge or
// ErrOutOfOrder.
func (s *Service) MakeDir(dst []byte, m MakeDirRequest) ([]byte, error) {
	return s.send(dst, AppendMakeDir(dst, m), func() error { return s.beginMakeDir(m) })
}

func (s *Service) beginMakeDir(m MakeDirRequest) error {
	if err := m.check(); err != nil {
		return err
	}
	s.machine.state = Making
	return nil
}

// Made appends a MADE. It is called on the daemon after MakeDirRequested. It fails with ErrOutOfOrder.
func (s *Service) Made(dst []byte) ([]byte, error) {
	return s.send(dst, AppendMade(dst), func() error {
		s.machine.state = Ready
		return nil
	})
}

func (s *Service) receiveMakeDir(msg []byte) (ServiceStep, error) {
	m, err := DecodeMakeDir(msg)
	if err == nil {
		err = s.beginMakeDir(m)
	}
	return ServiceStep{Event: MakeDirRequested, MakeDir: m}, err
}

func (s *Service) receiveMade(msg []byte) (ServiceStep, error) {
	if err := DecodeMade(msg); err != nil {
		return ServiceStep{}, err
	}
	s.machine.state = Ready
	return ServiceStep{Event: PeerMade}, nil
}
