package reference

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// Both roles compare the peer's size with their own limit, also at values that could overflow or change their sign.
func TestPeerSizeAtItsBoundaries(t *testing.T) {
	for _, limit := range []uint64{0, 1, 4096, 1 << 31, 1 << 32, math.MaxInt64, math.MaxUint64} {
		for _, size := range boundaries(limit) {
			for _, side := range []wire.Side{wire.Host, wire.DPU} {
				s := New(side, Local{}, wire.Limits{MaxMessage: 64, MaxFileSize: limit})
				s.Start()
				step, err := s.Receive(Direction{FileInHost: side == wire.DPU, Size: size}.Encode())
				if size <= limit && size <= math.MaxInt64 {
					if err != nil || step.Agreement.Size != size || step.Agreement.Sender == side {
						t.Errorf("%s, limit %d, size %d: %+v, %v", side, limit, size, step, err)
					}
					continue
				}
				if !errors.Is(err, wire.ErrTooLarge) || step.Event != None {
					t.Errorf("%s, limit %d, size %d: %+v, %v", side, limit, size, step, err)
				}
			}
		}
	}
}

// The limit applies to the peer's file and not to this side's own.
func TestOwnSizeIsNotLimited(t *testing.T) {
	for _, side := range []wire.Side{wire.Host, wire.DPU} {
		s := New(side, Local{HasFile: true, Size: 5000}, wire.Limits{MaxMessage: 64, MaxFileSize: 10})
		s.Start()
		step, err := s.Receive(Direction{FileInHost: side == wire.Host}.Encode())
		if err != nil || step.Agreement != (Agreement{wire.Reference, side, 5000}) {
			t.Errorf("%s: %+v, %v", side, step, err)
		}
	}
}

func TestSizeOfAnAbsentFileIsNotSent(t *testing.T) {
	host := New(wire.Host, Local{HasFile: false, Size: 7}, wire.Limits{MaxMessage: 64})
	wiretest.WantBytes(t, host.Start(), Direction{}.Encode())
}

// The exported range may end at the end of the address space and must not exceed it.
func TestExportedRangeAtItsBoundaries(t *testing.T) {
	for _, size := range []uint64{0, 1, 2, 4096, 1 << 32, math.MaxInt64} {
		for _, address := range append(boundaries(4096), -size, -size-1, -size+1) {
			wraps := size > 0 && address+(size-1) < address
			host := agreedSession(t, wire.Host, size)
			_, err := host.Export(address, []byte{1})
			if errors.Is(err, wire.ErrMalformed) != wraps || (err != nil) != wraps {
				t.Errorf("host, %d bytes at %#x: %v", size, address, err)
			}
			dpu := agreedSession(t, wire.DPU, size)
			step, err := dpu.Receive(Export{Address: address, Descriptor: []byte{1}}.Encode())
			if errors.Is(err, wire.ErrMalformed) != wraps || !wraps && step.Export.Address != address {
				t.Errorf("DPU, %d bytes at %#x: %+v, %v", size, address, step, err)
			}
		}
	}
}

func TestExportIsBoundedByMaxMessage(t *testing.T) {
	limits := wire.Limits{MaxMessage: 4080, MaxFileSize: 4096}
	for size, want := range map[int]error{
		0: wire.ErrMalformed, 1: nil, 4080 - 25: nil, 4080 - 24: nil,
		4080 - 23: wire.ErrTooLarge, 4080: wire.ErrTooLarge, 1 << 20: wire.ErrTooLarge,
	} {
		host := New(wire.Host, Local{HasFile: true, Size: 1}, limits)
		host.Start()
		if _, err := host.Receive(Direction{FileInHost: true}.Encode()); err != nil {
			t.Fatal(err)
		}
		msg, err := host.Export(4096, make([]byte, size))
		if !errors.Is(err, want) || len(msg) > limits.MaxMessage {
			t.Errorf("descriptor of %d bytes: message of %d, %v", size, len(msg), err)
		}
		if err == nil {
			continue
		}
		if host.State() != AwaitExport || msg != nil {
			t.Errorf("descriptor of %d bytes: refused, yet the state is %s", size, host.State())
		}
		notice, err := host.Finish(false)
		if err != nil || host.State() != Failed {
			t.Errorf("giving up after a refusal: %s, %v", host.State(), err)
		}
		wiretest.WantBytes(t, notice, Status{}.Encode())
	}
}

// Agreeing on the largest size allocates as little as agreeing on size 0.
func TestReceiveDoesNotAllocateWhatThePeerClaims(t *testing.T) {
	const rounds, perRound = 100, 2048
	announced := Direction{FileInHost: true, Size: math.MaxInt64}.Encode()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		s := New(wire.DPU, Local{}, wire.Limits{MaxMessage: 64, MaxFileSize: math.MaxInt64})
		s.Start()
		if _, err := s.Receive(announced); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > rounds*perRound {
		t.Errorf("%d agreements on 2^63-1 bytes allocated %d bytes", rounds, allocated)
	}
}

func TestErrorsReadAsOneSentence(t *testing.T) {
	limits := wire.Limits{MaxMessage: 64, MaxFileSize: 4096}
	for _, test := range []struct {
		local Local
		msg   []byte
		want  string
	}{
		{Local{}, Direction{FileInHost: true, Size: 5000}.Encode(),
			"negotiation in state await-direction at DIRECTION: too large: the peer's file has 5000 bytes, limit 4096"},
		{Local{HasFile: true}, Direction{FileInHost: true}.Encode(),
			"negotiation in state await-direction at DIRECTION: both the host and the DPU have the file"},
		{Local{}, []byte{9, 0, 0, 0},
			"negotiation in state await-direction at type 9: malformed message: unknown type"},
		{Local{}, []byte{3, 0, 0, 0, 7, 0, 0, 0},
			"negotiation in state await-direction at STATUS: malformed message: is_success is 7 instead of 0 or 1"},
		{Local{}, []byte{3}, "negotiation in state await-direction: malformed message: 1 bytes, too short for a type"},
	} {
		s := New(wire.DPU, test.local, limits)
		s.Start()
		if _, err := s.Receive(test.msg); err == nil || err.Error() != test.want {
			t.Errorf("% x: %v\nwant %s", test.msg, err, test.want)
		}
	}
}

// agreedSession returns a session that has agreed on a file of size bytes on the host.
func agreedSession(t *testing.T, side wire.Side, size uint64) *Session {
	t.Helper()
	s := New(side, Local{HasFile: side == wire.Host, Size: size}, wire.Limits{MaxMessage: 64,
		MaxFileSize: math.MaxInt64})
	s.Start()
	if _, err := s.Receive(Direction{FileInHost: true, Size: size}.Encode()); err != nil {
		t.Fatal(err)
	}
	return s
}

// nativeStub is a native protocol whose sessions are of no interest.
type nativeStub struct {
	needed bool
	begun  *Session // after which one
}

func (*nativeStub) Versions() wire.Versions { return wire.Versions{Min: 2, Max: 2} }

func (n *nativeStub) Needed() bool { return n.needed }

func (n *nativeStub) Begin(s *Session, _ wire.Side, _ uint8, _ wire.Limits) error {
	n.begun = s
	return nil
}

func TestNamesOfStatesOutOfRange(t *testing.T) {
	for _, name := range []string{
		State(99).String(), Event(99).String(), Event(-1).String(),
	} {
		if !strings.ContainsAny(name, "0123456789") {
			t.Errorf("%q hides the value", name)
		}
	}
}
