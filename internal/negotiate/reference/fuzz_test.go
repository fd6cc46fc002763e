package reference

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// Decoding never panics, retains no more than the message, and loses only padding.
func FuzzDecode(f *testing.F) {
	for _, v := range messageVectors(f) {
		f.Add([]byte(v.Hex))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		message, err := Decode(msg)
		if err != nil {
			wiretest.WantMalformed(t, message, err)
			return
		}
		encoded := message.Encode()
		wiretest.WantBytes(t, encoded, withoutPadding(message.Type(), msg))
		again, err := Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		wantMessage(t, again, message)
	})
}

func withoutPadding(t wire.Type, msg []byte) []byte {
	plain := append([]byte(nil), msg...)
	switch t {
	case wire.TypeExport:
		clear(plain[4:8])
	case wire.TypeStatus:
		clear(plain[5:8])
	}
	return plain
}

// For any messages and calls, a session stays in a state of its side, sends only messages of the protocol, and returns
// no more bytes than a message may have.
//
// The script is a sequence of messages, each after its length in one byte. Lengths from 240 on are calls instead; the
// call of Export is followed by the length of a descriptor and the descriptor.
func FuzzSession(f *testing.F) {
	for _, hasFile := range []bool{true, false} {
		for _, dpu := range []bool{true, false} {
			f.Add(dpu, hasFile, uint64(agreedSize), fuzzScript(dpu, hasFile == !dpu))
		}
	}
	f.Fuzz(func(t *testing.T, dpu, hasFile bool, size uint64, script []byte) {
		side := wire.Host
		if dpu {
			side = wire.DPU
		}
		s := New(side, Local{HasFile: hasFile, Size: size}, fuzzLimits)
		for len(script) > 0 {
			script = fuzzStep(t, s, script)
			checkAlways(t, s)
		}
	})
}

var fuzzLimits = wire.Limits{MaxMessage: 64, MaxFileSize: 4096}

const (
	fuzzStart      = 240
	fuzzExport     = 241
	fuzzSucceed    = 242
	fuzzGiveUp     = 243
	fuzzDisconnect = 244
)

func fuzzStep(t *testing.T, s *Session, script []byte) (rest []byte) {
	op, rest := script[0], script[1:]
	before := s.State()
	switch op {
	case fuzzStart:
		s.Start()
	case fuzzExport:
		var descriptor []byte
		descriptor, rest = wiretest.TakeCounted(rest)
		msg, err := s.Export(gridAddress, descriptor)
		checkCall(t, s, before, err)
		checkReply(t, msg)
	case fuzzSucceed:
		msg, err := s.Finish(true)
		checkCall(t, s, before, err)
		checkReply(t, msg)
	case fuzzGiveUp:
		msg, err := s.Finish(false)
		if err != nil || s.State() != Failed {
			t.Fatalf("giving up in %s: %s, %v", before, s.State(), err)
		}
		checkReply(t, msg)
	case fuzzDisconnect:
		if err := s.Disconnected(); (err == nil) != (s.State() == Done) {
			t.Fatalf("disconnected in %s: %s, %v", before, s.State(), err)
		}
	default:
		var msg []byte
		msg, rest = wiretest.TakeCounted(script)
		checkReceived(t, s, msg)
	}
	return rest
}

func checkReceived(t *testing.T, s *Session, msg []byte) {
	t.Helper()
	before := s.State()
	step, err := s.Receive(msg)
	checkReply(t, step.Reply)
	if (err != nil) != (s.State() == Failed) {
		t.Fatalf("% x in %s: %s, %v", msg, before, s.State(), err)
	}
	if err != nil && (step.Event != None || before == Failed && step.Reply != nil) {
		t.Fatalf("% x in %s: %+v together with %v", msg, before, step, err)
	}
	if len(step.Export.Descriptor) > fuzzLimits.MaxMessage-ExportHeaderSize {
		t.Fatalf("% x in %s: a descriptor of %d bytes", msg, before, len(step.Export.Descriptor))
	}
	if step.Event == Agreed && step.Agreement.Sender != s.side && step.Agreement.Size > fuzzLimits.MaxFileSize {
		t.Fatalf("% x in %s: agreed on %d bytes", msg, before, step.Agreement.Size)
	}
}

// checkCall checks that a refused call does not change the state.
func checkCall(t *testing.T, s *Session, before State, err error) {
	t.Helper()
	var failure *wire.Error
	if err != nil && (s.State() != before || !errors.As(err, &failure) || failure.State == nil) {
		t.Fatalf("refused in %s: %s, %v", before, s.State(), err)
	}
}

func checkReply(t *testing.T, msg []byte) {
	t.Helper()
	if msg == nil {
		return
	}
	message, err := Decode(msg)
	if err != nil || len(msg) > fuzzLimits.MaxMessage {
		t.Fatalf("sent % x: %v", msg, err)
	}
	wiretest.WantBytes(t, msg, withoutPadding(message.Type(), msg))
}

func checkAlways(t *testing.T, s *Session) {
	t.Helper()
	for _, state := range statesOf(s.side) {
		if s.State() == state {
			return
		}
	}
	t.Fatalf("the %s is in state %s", s.side, s.State())
}

// fuzzScript returns the script of a transfer without faults for one side.
func fuzzScript(dpu, fileInHost bool) []byte {
	script := append([]byte{fuzzStart}, wiretest.Counted(Direction{FileInHost: fileInHost,
		Size: agreedSize}.Encode())...)
	if dpu {
		script = append(script, wiretest.Counted(Export{Address: gridAddress, Descriptor: gridDescriptor}.Encode())...)
	} else {
		script = append(append(script, fuzzExport), wiretest.Counted(gridDescriptor)...)
		script = append(script, wiretest.Counted(Status{Success: true}.Encode())...)
	}
	return append(script, fuzzSucceed, fuzzDisconnect)
}

// The seeds must reach the end of a transfer.
func TestFuzzScriptsComplete(t *testing.T) {
	for _, side := range []wire.Side{wire.Host, wire.DPU} {
		s := New(side, Local{HasFile: true, Size: agreedSize}, fuzzLimits)
		for script := fuzzScript(side == wire.DPU, side == wire.Host); len(script) > 0; {
			script = fuzzStep(t, s, script)
		}
		if s.State() != Done {
			t.Errorf("the %s's script ends in %s", side, s.State())
		}
	}
}
