package service

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// Decoding never panics, and encoding an accepted message returns the same bytes. The type is apart from the rest of
// the message, so that every input is a message of the protocol.
func FuzzServiceDecode(f *testing.F) {
	for _, v := range serviceVectors(f) {
		if len(v.Hex) >= wire.TypeSize {
			f.Add(uint8(wire.TypeOf(v.Hex)-wire.TypeGreeting), []byte(v.Hex[wire.TypeSize:]))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, rest []byte) {
		message := wire.TypeGreeting + wire.Type(kind%uint8(wire.TypeMeasure-wire.TypeGreeting+1))
		checkServiceDecoding(t, append(wiretest.AppendType(nil, message), rest...))
	})
}

func checkServiceDecoding(t *testing.T, msg []byte) {
	message, err := decodeService(msg)
	if err != nil {
		wiretest.WantMalformed(t, message, err)
		return
	}
	encoded := encodeService(message)
	// Codes and texts are made valid.
	free := slices.Contains([]wire.Type{wire.TypeRefused, wire.TypeListEnd, wire.TypeRemoved}, wire.TypeOf(msg))
	if !free {
		wiretest.WantBytes(t, encoded, msg)
	}
	again, err := decodeService(encoded)
	if err != nil || !free && !reflect.DeepEqual(again, message) {
		t.Fatalf("%+v became %+v, %v", message, again, err)
	}
	checkServicePaths(t, message)
}

// checkServicePaths checks that no path leads out of the share, by splitting it once more.
func checkServicePaths(t *testing.T, message any) {
	t.Helper()
	var paths []string
	switch m := message.(type) {
	case CopyRequest:
		paths = []string{m.Place.Path}
	case Accepted:
		paths = []string{m.Path}
	case ListRequest:
		paths = []string{m.Place.Path}
	case MakeDirRequest:
		paths = []string{m.Place.Path}
	case RemoveRequest:
		paths = append([]string{m.Place.Path}, m.Paths...)
	case []Item:
		for _, i := range m {
			if i.Kind == ItemPath {
				paths = append(paths, i.Text)
			}
		}
	case []Listed:
		for _, e := range m {
			paths = append(paths, e.Name)
		}
	}
	for _, path := range paths {
		for _, name := range strings.Split(path, "/") {
			if name == "." || name == ".." || name == "" && path != "" || strings.Contains(name, "\x00") {
				t.Fatalf("%+v has the path %q", message, path)
			}
		}
	}
}

// For any messages and calls, a session stays in a state of its protocol, sends only messages that the peer can decode,
// does not change by refused calls, and uses no more memory than its limits allow.
//
// The script is a sequence of messages, each after its length in one byte. Lengths from 240 on are calls: those without
// arguments, and one with the arguments of the message that follows.
func FuzzServiceSession(f *testing.F) {
	for _, role := range []Role{Command, Daemon} {
		f.Add(role == Daemon, serviceScript(role))
	}
	f.Fuzz(func(t *testing.T, daemon bool, script []byte) {
		role := Command
		if daemon {
			role = Daemon
		}
		playService(t, role, script)
	})
}

const (
	serviceFuzzStart      = 240
	serviceFuzzCall       = 241
	serviceFuzzDisconnect = 242
	serviceFuzzLimit      = 239
)

func playService(t *testing.T, role Role, script []byte) *Session {
	s := newService(t, role)
	s.machine.Limits.MaxMessage = serviceFuzzLimit
	for len(script) > 0 {
		script = playServiceOnce(t, s, script)
		checkService(t, s)
	}
	return s
}

func playServiceOnce(t *testing.T, s *Session, script []byte) (rest []byte) {
	before := s.State()
	switch script[0] {
	case serviceFuzzStart:
		checkServiceSent(t, s.Start())
		return script[1:]
	case serviceFuzzDisconnect:
		if err := s.Disconnected(); (err == nil) != (s.State() == Done) {
			t.Fatalf("disconnected in %s: %s, %v", before, s.State(), err)
		}
		return script[1:]
	case serviceFuzzCall:
		msg, rest := wiretest.TakeCounted(script[1:])
		playServiceCall(t, s, msg)
		return rest
	}
	msg, rest := wiretest.TakeCounted(script)
	step, err := s.Receive(bytes.Clone(msg))
	checkServiceSent(t, step.Reply)
	if (err != nil) != (s.State() == Failed) || err != nil && step.Event != None ||
		before == Failed && step.Reply != nil {
		t.Fatalf("% x in %s: %s, %+v, %v", msg, before, s.State(), step, err)
	}
	return rest
}

// playServiceCall makes the call that sends such a message.
func playServiceCall(t *testing.T, s *Session, msg []byte) {
	message, err := decodeService(msg)
	before := serviceSnapshotOf(s)
	var said []byte
	if err == nil {
		said, err = callService(s, message)
	} else if err = s.Native(msg); err == nil && !isNative(wire.TypeOf(msg)) {
		t.Fatalf("% x passes as a message of the native session", msg)
	}
	if err == nil {
		checkServiceSent(t, said)
		return
	}
	var failure *wire.Error
	if said != nil || !errors.As(err, &failure) || failure.State == nil {
		t.Fatalf("refused %+v with % x, %v", message, said, err)
	}
	if !reflect.DeepEqual(serviceSnapshotOf(s), before) {
		t.Fatalf("refused %+v, and yet it changed something", message)
	}
}

func callService(s *Session, message any) (said []byte, err error) {
	switch m := message.(type) {
	case Refusal:
		return s.Refuse(nil, m)
	case []Item:
		said, _, err = s.Items(nil, m)
	case CopyRequest:
		return s.Copy(nil, m)
	case Accepted:
		return s.Accept(nil, m)
	case closeMessage:
		return s.Close(nil)
	case ListRequest:
		return s.List(nil, m)
	case []Listed:
		said, _, err = s.Listed(nil, m)
	case ListEnd:
		return s.ListEnd(nil, m.Code, m.Text)
	case RemoveRequest:
		said, _, err = s.Remove(nil, m)
	case []Removal:
		return s.Removed(nil, m)
	case servicePingMessage:
		return s.Ping(nil, m.Payload, m.Kind)
	case servicePongMessage:
		return s.Pong(nil, m.Payload)
	case workingMessage:
		return s.Working(nil, uint32(m))
	}
	return said, err
}

func checkServiceSent(t *testing.T, msg []byte) {
	t.Helper()
	if msg == nil {
		return
	}
	if _, err := decodeService(msg); err != nil || len(msg) > serviceFuzzLimit {
		t.Fatalf("sent % x: %v", msg, err)
	}
}

// checkService checks that a session's memory is within its limits.
func checkService(t *testing.T, s *Session) {
	t.Helper()
	const most = 12 * serviceFuzzLimit
	if cap(s.reused.items)*int(unsafe.Sizeof(Item{})) > most ||
		cap(s.reused.listed)*int(unsafe.Sizeof(Listed{})) > most ||
		cap(s.reused.paths)*int(unsafe.Sizeof("")) > most ||
		cap(s.reused.removed)*int(unsafe.Sizeof(Removal{})) > most || cap(s.reused.payload) > 2*serviceFuzzLimit ||
		s.items.patterns > MaxPatterns ||
		s.items.paths > MaxListedPaths || s.items.bytes > MaxItemsTogether {
		t.Fatalf("a session of more than its limits: %+v", s)
	}
	if !slices.Contains(serviceSituations, s.State().String()) {
		t.Fatalf("in state %s", s.State())
	}
}

// serviceScript returns the script of a session with all requests for one role.
func serviceScript(role Role) []byte {
	script := []byte{serviceFuzzStart}
	says := func(from Role, msg []byte) {
		if from == role {
			script = append(script, serviceFuzzCall)
		}
		script = append(script, wiretest.Counted(msg)...)
	}
	if role == Daemon {
		greeting := commandGreeting
		greeting.Versions = Supported
		script = append(script, wiretest.Counted(AppendGreeting(nil, greeting))...)
	} else {
		answer := daemonGreeting
		answer.Versions, answer.Version = Supported, Supported.Max
		script = append(script, wiretest.Counted(AppendGreeting(nil, answer))...)
	}
	says(Command, AppendPing(nil, Ping{Payload: []byte{1}}))
	says(Daemon, AppendPong(nil, Ping{Payload: []byte{1}}))
	says(Command, AppendPing(nil, Ping{Number: 1, Kind: PingText, Payload: []byte("hello")}))
	says(Daemon, encodeRefused(Refusal{Code: wire.AbortLimit, Text: "no"}))
	says(Command, encodeItems([]Item{{Kind: ItemExclude, Text: "*.o"}, {Kind: ItemInclude, Text: "a"}}))
	says(Command, AppendCopy(nil, pullRequest))
	says(Daemon, AppendWorking(nil, 1))
	says(Daemon, encodeAccepted(pullAccepted))
	says(Command, nativeMessages[0])
	says(Daemon, nativeMessages[0])
	says(Daemon, wire.AppendEmpty(nil, wire.TypeClose))
	says(Command, nativeMessages[0])
	says(Command, wire.AppendEmpty(nil, wire.TypeClose))
	says(Command, AppendList(nil, ListRequest{ListRecursive, inbox}))
	says(Daemon, encodeListed(listedRoot(listedAt(1, wire.EntryDirectory, "a"), listedAt(2, wire.EntryFile, "b"))))
	says(Daemon, encodeListEnd(ListEnd{Count: 3}))
	says(Command, encodeRemove(removeRequest))
	says(Daemon, AppendRemoved(nil, []Removal{{}, {wire.AbortTarget, "not empty"}}, serviceLimit))
	return append(script, serviceFuzzDisconnect)
}

// The seeds must reach the end of a session.
func TestServiceFuzzScriptsComplete(t *testing.T) {
	for _, role := range []Role{Command, Daemon} {
		s := playService(t, role, serviceScript(role))
		if s.State() != Done || s.pings != 2 || s.removals != 2 {
			t.Errorf("the script of the %s ends in %s: %v", role, s.State(), s.machine.Failure)
		}
	}
}
