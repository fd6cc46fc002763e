package reference

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// These tests try every input in every state of a session, in both roles, with and without the file. The expected
// results are in testdata/states.txt, which README.md of package negotiate explains.

const (
	agreedSize = 100
	overSize   = 4097
)

var (
	gridLimits     = wire.Limits{MaxMessage: 200, MaxFileSize: 4096}
	gridAddress    = uint64(0x7f0000001000)
	gridDescriptor = []byte("descriptor")
)

// gridLocals has all kinds of sides in the grid.
var gridLocals = []gridLocal{
	{"has", Local{HasFile: true, Size: agreedSize}},
	{"lacks", Local{Size: agreedSize}},
	{"has,offers", Local{HasFile: true, Size: agreedSize, Native: &nativeStub{}}},
	{"lacks,offers", Local{Size: agreedSize, Native: &nativeStub{}}},
	{"streams,offers", Local{Native: &nativeStub{needed: true}}},
}

type gridLocal struct {
	name  string
	local Local
}

// gets reports whether the session of such a side can reach a state without faults.
func (l gridLocal) gets(to State) bool {
	switch to {
	case Idle, AwaitDirection, Failed:
		return true
	case HandedOver:
		return l.local.Native != nil
	}
	return !strings.HasPrefix(l.name, "streams")
}

var gridErrors = map[string]error{
	"both-have-file":   wire.ErrBothHaveFile,
	"neither-has-file": wire.ErrNeitherHasFile,
	"too-large":        wire.ErrTooLarge,
	"malformed":        wire.ErrMalformed,
	"out-of-order":     wire.ErrOutOfOrder,
	"peer-refused":     wire.ErrPeerRefused,
	"peer-failed":      wire.ErrPeerFailed,
	"peer-lost":        wire.ErrPeerLost,
	"disagreement":     wire.ErrDisagreement,
	"version":          wire.ErrVersion,
	"needs-native":     wire.ErrNeedsNative,
}

// outcome is the result of an input.
type outcome struct {
	step Step
	err  error
}

type input struct {
	name  string
	apply func(*Session) outcome
}

func gridInputs() []input {
	inputs := []input{
		received("DIRECTION(1,100)", Direction{FileInHost: true, Size: agreedSize}.Encode()),
		received("DIRECTION(0,100)", Direction{Size: agreedSize}.Encode()),
		received("DIRECTION(1,over)", Direction{FileInHost: true, Size: overSize}.Encode()),
		received("DIRECTION(0,over)", Direction{Size: overSize}.Encode()),
		received("DIRECTION(1,100)dc0103",
			Direction{FileInHost: true, Size: agreedSize, Offer: [3]byte{0xdc, 1, 3}}.Encode()),
		received("DIRECTION(0,100)dc0202", Direction{Size: agreedSize, Offer: [3]byte{0xdc, 2, 2}}.Encode()),
		received("DIRECTION(0,100)dc0101", Direction{Size: agreedSize, Offer: [3]byte{0xdc, 1, 1}}.Encode()),
		received("DIRECTION(0,100)dd0101", Direction{Size: agreedSize, Offer: [3]byte{0xdd, 1, 1}}.Encode()),
		received("EXPORT", Export{Address: gridAddress, Descriptor: gridDescriptor}.Encode()),
		received("EXPORT,wraps", Export{Address: math.MaxUint64 - agreedSize + 2, Descriptor: gridDescriptor}.Encode()),
		received("STATUS(1)", Status{Success: true}.Encode()),
		received("STATUS(0)", Status{Success: false}.Encode()),
		{"Start()", func(s *Session) outcome { return outcome{step: Step{Reply: s.Start()}} }},
		{"Export()", func(s *Session) outcome { return called(s.Export(gridAddress, gridDescriptor)) }},
		{"Finish(true)", func(s *Session) outcome { return called(s.Finish(true)) }},
		{"Finish(false)", func(s *Session) outcome { return called(s.Finish(false)) }},
		{"Disconnected()", func(s *Session) outcome { return outcome{err: s.Disconnected()} }},
	}
	for _, msg := range malformedMessages() {
		inputs = append(inputs, received("malformed", msg))
	}
	return inputs
}

func malformedMessages() [][]byte {
	wrongBool := Direction{}.Encode()
	wrongBool[4] = 2
	wrongLength := Export{Descriptor: gridDescriptor}.Encode()
	wrongLength[23]++
	unknown := Status{}.Encode()
	binary.LittleEndian.PutUint32(unknown, 4)
	return [][]byte{
		nil,
		{1, 0, 0},
		unknown,
		wrongBool,
		Direction{}.Encode()[:15],
		wrongLength,
		Export{}.Encode(),
		append(Status{Success: true}.Encode(), 0),
		Export{Descriptor: make([]byte, 201-ExportHeaderSize)}.Encode(), // well-formed, but above MaxMessage
	}
}

func received(name string, msg []byte) input {
	return input{name, func(s *Session) outcome {
		step, err := s.Receive(msg)
		return outcome{step, err}
	}}
}

func called(reply []byte, err error) outcome { return outcome{Step{Reply: reply}, err} }

// statesOf returns the states that a side can reach; together these are all states.
func statesOf(side wire.Side) []State {
	if side == wire.Host {
		return []State{Idle, AwaitDirection, AwaitExport, AwaitStatus, Done, Failed, HandedOver}
	}
	return []State{Idle, AwaitDirection, AwaitExport, Copying, AwaitDisconnect, Done, Failed, HandedOver}
}

func TestEveryStateBelongsToARole(t *testing.T) {
	for state := Idle; state <= HandedOver; state++ {
		if !slices.Contains(statesOf(wire.Host), state) && !slices.Contains(statesOf(wire.DPU), state) {
			t.Errorf("no side has state %s", state)
		}
	}
	for state := Idle; state <= HandedOver; state++ {
		if stateNames[state] == "" {
			t.Errorf("state %d has no name", int(state))
		}
	}
}

func TestEveryInputInEveryState(t *testing.T) {
	grid := wiretest.ReadGridFile(t, "states.txt")
	inputs := gridInputs()
	used := map[wiretest.GridKey]bool{}
	for _, side := range []wire.Side{wire.Host, wire.DPU} {
		for _, state := range statesOf(side) {
			for _, l := range gridLocals {
				for _, in := range inputs {
					if !l.gets(state) {
						continue
					}
					key := wiretest.GridKey{side.String(), column(state, l), in.name}
					cell, ok := grid[key]
					if !ok {
						t.Fatalf("states.txt says nothing of %v", key)
					}
					used[key] = true
					checkCell(t, key, cell, reach(t, side, l.local, state), in)
				}
			}
		}
	}
	for key := range grid {
		if !used[key] {
			t.Errorf("states.txt speaks of %v, which does not exist", key)
		}
	}
}

// column returns a state's column. The kind of a side matters only before the agreement.
func column(state State, l gridLocal) string {
	switch {
	case state == AwaitDirection:
		return l.name
	case state == Idle && l.local.Native != nil:
		return "idle,offers"
	}
	return state.String()
}

// reach brings a session into a state, without faults except for Failed.
func reach(t *testing.T, side wire.Side, local Local, state State) *Session {
	t.Helper()
	s := New(side, local, gridLimits)
	if state == Failed {
		if _, err := s.Receive(Status{Success: false}.Encode()); err == nil {
			t.Fatal("STATUS(0) did not fail the session")
		}
	}
	for s.State() != state {
		before := s.State()
		if err := advance(s, state == HandedOver); err != nil || s.State() == before {
			t.Fatalf("%s cannot get from %s to %s: %v", side, before, state, err)
		}
	}
	return s
}

func advance(s *Session, toNative bool) error {
	switch s.State() {
	case Idle:
		s.Start()
	case AwaitDirection:
		heard := Direction{FileInHost: s.local.HasFile == (s.side == wire.Host), Size: agreedSize}
		if toNative {
			heard.Offer = [3]byte{offerMark, 2, 2}
		}
		return wiretest.Second(s.Receive(heard.Encode()))
	case AwaitExport:
		if s.side == wire.Host {
			return wiretest.Second(s.Export(gridAddress, gridDescriptor))
		}
		return wiretest.Second(s.Receive(Export{Address: gridAddress, Descriptor: gridDescriptor}.Encode()))
	case Copying:
		return wiretest.Second(s.Finish(true))
	case AwaitStatus:
		return wiretest.Second(s.Receive(Status{Success: true}.Encode()))
	case AwaitDisconnect:
		return s.Disconnected()
	}
	return nil
}

func checkCell(t *testing.T, key wiretest.GridKey, cell string, s *Session, in input) {
	t.Helper()
	before, failure := s.State(), s.machine.Failure
	got := in.apply(s)
	want := expectation{next: before}
	switch {
	case cell == "ignored":
	case cell == "same":
		want.err = failure
	case cell == "refused":
		want.err = wire.ErrOutOfOrder
	case cell == "version>R":
		want = expectation{next: Failed, reply: gridReply("R", s), err: wire.ErrVersion}
	case cell[0] == '!':
		want = expectation{next: Failed, reply: []byte{3, 0, 0, 0, 0, 0, 0, 0}, err: gridErrors[cell[1:]]}
	case cell[0] == '.':
		want = expectation{next: Failed, err: gridErrors[cell[1:]]}
	default:
		want = parseSuccess(t, cell, s)
	}
	if strings.ContainsAny(cell[:1], "!.") && want.err == nil {
		t.Fatalf("%v: no error is called %s", key, cell)
	}
	want.check(t, key, got, s)
	if before == Failed && s.machine.Failure != failure {
		t.Errorf("%v: the session forgot that it failed with %v", key, failure)
	}
	if s.State() == Failed {
		checkFailedForGood(t, key, s)
	}
}

type expectation struct {
	next  State
	event Event
	reply []byte
	err   error
}

func (want expectation) check(t *testing.T, key wiretest.GridKey, got outcome, s *Session) {
	t.Helper()
	if s.State() != want.next || got.step.Event != want.event || string(got.step.Reply) != string(want.reply) ||
		!errors.Is(got.err, want.err) {
		t.Errorf("%v: got state %s, event %s, reply % x, error %v\nwant state %s, event %s, reply % x, error %v", key,
			s.State(), got.step.Event, got.step.Reply, got.err, want.next, want.event, want.reply, want.err)
	}
	if failure := new(wire.Error); got.err != nil && (!errors.As(got.err, &failure) || failure.State == nil) {
		t.Errorf("%v: %v does not say in which state", key, got.err)
	}
	wantAgreement, wantExport := Agreement{}, ""
	if want.event == Agreed {
		wantAgreement = Agreement{Protocol: wire.Reference, Sender: senderOf(key, s), Size: agreedSize}
	}
	if want.event == Exported {
		wantExport = string(gridDescriptor)
	}
	stub, _ := s.local.Native.(*nativeStub)
	begun := got.step.Version == 2 && stub != nil && stub.begun == s
	if (want.event == ToNative) != begun {
		t.Errorf("%v: got version %d, begun %+v", key, got.step.Version, stub)
	}
	if got.step.Agreement != wantAgreement || string(got.step.Export.Descriptor) != wantExport {
		t.Errorf("%v: got %+v and %+v", key, got.step.Agreement, got.step.Export)
	}
}

func senderOf(key wiretest.GridKey, s *Session) wire.Side {
	if strings.HasPrefix(key[1], "has") {
		return s.side
	}
	return s.side.Other()
}

// parseSuccess parses next[:event][>message].
func parseSuccess(t *testing.T, cell string, s *Session) expectation {
	t.Helper()
	cell, message, _ := strings.Cut(cell, ">")
	name, eventName, _ := strings.Cut(cell, ":")
	want := expectation{reply: gridReply(message, s)}
	want.next = State(max(0, slices.Index(stateNames, name)))
	for event := Agreed; event <= ToNative; event++ {
		if event.String() == eventName {
			want.event = event
		}
	}
	if want.next == 0 || (want.event == None) != (eventName == "") || (want.reply == nil) != (message == "") {
		t.Fatalf("cell %q names an unknown state, event or message", cell)
	}
	return want
}

// gridReply has explicit bytes, so that a wrong encoder cannot confirm itself.
func gridReply(name string, s *Session) []byte {
	switch name {
	case "D", "O":
		reply := []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		if s.local.HasFile == (s.side == wire.Host) {
			reply[4] = 1
		}
		if s.local.HasFile {
			reply[15] = agreedSize
		}
		if name == "O" {
			copy(reply[5:], []byte{0xdc, 2, 2})
		}
		return reply
	case "A":
		return []byte{1, 0, 0, 0, 0, 0xdc, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0}
	case "R":
		return []byte{1, 0, 0, 0, 0, 0xdd, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0}
	case "E":
		reply := []byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 10}
		return append(reply, "descriptor"...)
	case "S1":
		return []byte{3, 0, 0, 0, 1, 0, 0, 0}
	case "S0":
		return []byte{3, 0, 0, 0, 0, 0, 0, 0}
	}
	return nil
}

func checkFailedForGood(t *testing.T, key wiretest.GridKey, s *Session) {
	t.Helper()
	for _, msg := range [][]byte{Status{Success: true}.Encode(), Direction{}.Encode(), nil} {
		step, err := s.Receive(msg)
		if err != error(s.machine.Failure) || step.Reply != nil || step.Event != None || s.State() != Failed {
			t.Errorf("%v: a failed session answered % x with %+v, %v", key, msg, step, err)
		}
	}
}
