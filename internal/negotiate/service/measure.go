package service

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// measureVersion is the first version of the service protocol that has MEASURE.
const measureVersion = 2

// BenchServerName is the Comch server name for measurements between two commands, apart from the name for copies.
const BenchServerName = "dma copy bench"

// MeasureRequest is the content of a MEASURE: a copy from memory to memory, which reads and stores nothing.
type MeasureRequest struct {
	Direction CopyDirection
	Path      wire.Path // the only one that the copy may use
	Lanes     uint8     // of the daemon, 1 to MaxLanes
	Chunk     uint32    // bytes, MinChunk to MaxChunk; the daemon may use less
	Depth     uint32    // chunks in flight, 1 to MaxDepth; the daemon may use fewer
	Size      uint64    // bytes to be copied, 1 to MaxSize
}

func (m *MeasureRequest) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &m.Direction)
	wire.Integer(&c, &m.Path)
	wire.Integer(&c, &m.Lanes)
	c.Zeros(1)
	wire.Integer(&c, &m.Chunk)
	wire.Integer(&c, &m.Depth)
	wire.Integer(&c, &m.Size)
	c.Verify(m.check)
	return c
}

func (m MeasureRequest) check() error {
	switch {
	case m.Direction != CopyPush && m.Direction != CopyPull:
		return wire.Malformed(wire.TypeMeasure, "unknown %s", m.Direction)
	case !m.Path.Known():
		return wire.Malformed(wire.TypeMeasure, "unknown %s", m.Path)
	case m.Lanes == 0 || m.Lanes > wire.MaxLanes:
		return wire.Malformed(wire.TypeMeasure, "%d lanes, limit %d", m.Lanes, wire.MaxLanes)
	case m.Chunk < wire.MinChunk || m.Chunk > wire.MaxChunk || m.Depth == 0 || m.Depth > wire.MaxDepth:
		return wire.Malformed(wire.TypeMeasure, "%d chunks of %d bytes", m.Depth, m.Chunk)
	case m.Size == 0 || m.Size > wire.MaxSize:
		return wire.Malformed(wire.TypeMeasure, "%d bytes, limit %d", m.Size, uint64(wire.MaxSize))
	}
	return nil
}

// Measures reports whether the peer knows MEASURE.
func (s *Session) Measures() bool { return s.Version() >= measureVersion }

// Measure appends a MEASURE, which the daemon answers as a COPY. It is called on the command in Ready. It fails with
// ErrMalformed, and with ErrOutOfOrder also if the version of the session has no MEASURE.
func (s *Session) Measure(dst []byte, m MeasureRequest) ([]byte, error) {
	msg := wire.Encode(dst, wire.TypeMeasure, &m, (*MeasureRequest).fields)
	return s.send(dst, msg, func() error { return s.beginMeasure(m) })
}

func (s *Session) beginMeasure(m MeasureRequest) error {
	if !s.Measures() {
		return wire.OutOfOrder(wire.TypeMeasure)
	}
	if err := m.check(); err != nil {
		return err
	}
	s.direction, s.machine.State = m.Direction, Requested
	return nil
}

func (s *Session) receiveMeasure(msg []byte) (Step, error) {
	m, err := receive(msg, wire.TypeMeasure, (*MeasureRequest).fields, s.beginMeasure)
	return Step{Event: MeasureRequested, Measure: m}, err
}
