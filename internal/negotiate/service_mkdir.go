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
	err := s.mayCall(TypeMakeDir)
	if err == nil {
		err = firstError(m.check(),
			s.checkFits(TypeMakeDir, placeRequestSize+len(m.Place.Share)+len(m.Place.Path)))
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.state = Making
	return AppendMakeDir(dst, m), nil
}

// Made appends a MADE. It is called on the daemon after MakeDirRequested. It fails with ErrOutOfOrder.
func (s *Service) Made(dst []byte) ([]byte, error) {
	if err := s.mayCall(TypeMade); err != nil {
		return dst, s.refuse(err)
	}
	s.state = Ready
	return AppendMade(dst), nil
}

func (s *Service) receiveMakeDir(msg []byte) (ServiceStep, error) {
	m, err := DecodeMakeDir(msg)
	if err != nil {
		return ServiceStep{}, err
	}
	s.state = Making
	return ServiceStep{Event: MakeDirRequested, MakeDir: m}, nil
}

func (s *Service) receiveMade(msg []byte) (ServiceStep, error) {
	if err := DecodeMade(msg); err != nil {
		return ServiceStep{}, err
	}
	s.state = Ready
	return ServiceStep{Event: PeerMade}, nil
}
