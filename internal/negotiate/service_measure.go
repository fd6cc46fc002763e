package negotiate

// measureVersion is the first version of the service protocol that has MEASURE.
const measureVersion = 2

// BenchServerName is the Comch server name for measurements between two commands, apart from that of copies.
const BenchServerName = "dma copy bench"

// MeasureRequest is the content of a MEASURE: a copy from memory to memory, which reads and stores nothing.
type MeasureRequest struct {
	Direction CopyDirection
	Path      Path   // the only one that the copy may use
	Lanes     uint8  // of the daemon, 1 to MaxLanes
	Chunk     uint32 // bytes, MinChunk to MaxChunk; the daemon may use less
	Depth     uint32 // chunks in flight, 1 to MaxDepth; the daemon may use fewer
	Size      uint64 // bytes to be copied, 1 to MaxSize
}

// AppendMeasure appends a MEASURE without checking it.
func AppendMeasure(dst []byte, m MeasureRequest) []byte {
	return encode(dst, TypeMeasure, &m, (*MeasureRequest).fields)
}

// DecodeMeasure decodes a MEASURE. It fails with ErrMalformed.
func DecodeMeasure(msg []byte) (MeasureRequest, error) {
	return decode(msg, TypeMeasure, (*MeasureRequest).fields)
}

func (m *MeasureRequest) fields(c codec) codec {
	integer(&c, &m.Direction)
	integer(&c, &m.Path)
	integer(&c, &m.Lanes)
	c.zeros(1)
	integer(&c, &m.Chunk)
	integer(&c, &m.Depth)
	integer(&c, &m.Size)
	c.verify(m.check)
	return c
}

func (m MeasureRequest) check() error {
	switch {
	case m.Direction != CopyPush && m.Direction != CopyPull:
		return malformed(TypeMeasure, "unknown %s", m.Direction)
	case !m.Path.Known():
		return malformed(TypeMeasure, "unknown %s", m.Path)
	case m.Lanes == 0 || m.Lanes > MaxLanes:
		return malformed(TypeMeasure, "%d lanes, limit %d", m.Lanes, MaxLanes)
	case m.Chunk < MinChunk || m.Chunk > MaxChunk || m.Depth == 0 || m.Depth > MaxDepth:
		return malformed(TypeMeasure, "%d chunks of %d bytes", m.Depth, m.Chunk)
	case m.Size == 0 || m.Size > MaxSize:
		return malformed(TypeMeasure, "%d bytes, limit %d", m.Size, uint64(MaxSize))
	}
	return nil
}

// Measures reports whether the peer knows MEASURE.
func (s *Service) Measures() bool { return s.Version() >= measureVersion }

// Measure appends a MEASURE, which the daemon answers as a COPY. It is called on the command in Ready. It fails with
// ErrMalformed, and with ErrOutOfOrder also if the version of the session has no MEASURE.
func (s *Service) Measure(dst []byte, m MeasureRequest) ([]byte, error) {
	return s.send(dst, AppendMeasure(dst, m), func() error { return s.beginMeasure(m) })
}

func (s *Service) beginMeasure(m MeasureRequest) error {
	if !s.Measures() {
		return outOfOrder(TypeMeasure)
	}
	if err := m.check(); err != nil {
		return err
	}
	s.direction, s.machine.state = m.Direction, Requested
	return nil
}

func (s *Service) receiveMeasure(msg []byte) (ServiceStep, error) {
	m, err := DecodeMeasure(msg)
	if err == nil {
		err = s.beginMeasure(m)
	}
	return ServiceStep{Event: MeasureRequested, Measure: m}, err
}
