package negotiate

import (
	"encoding/binary"
	"fmt"
)

// sessionState is the type of the states of one protocol.
type sessionState interface {
	comparable
	fmt.Stringer
}

// machine is what the sessions of all protocols have, for states of type S.
type machine[S sessionState] struct {
	limits  Limits
	state   S
	failure *Error // why the session has failed; otherwise nil
	failed  S      // the state after that
}

// newMachine returns a machine in its first state.
func newMachine[S sessionState](limits Limits, first, failed S) machine[S] {
	return machine[S]{limits: limits, state: first, failed: failed}
}

// reached returns the state, or of a failed session the one in which it failed.
func (m *machine[S]) reached() S {
	if m.failure != nil {
		if state, is := m.failure.State.(S); is {
			return state
		}
	}
	return m.state
}

// fail ends the session.
func (m *machine[S]) fail(failure *Error) error {
	failure.State = m.state
	return m.end(failure)
}

// end ends the session for a failure of an earlier state.
func (m *machine[S]) end(failure *Error) error {
	m.failure, m.state = failure, m.failed
	return failure
}

// refuse returns the error for a call that is not possible. Nothing was sent, so the state stays.
func (m *machine[S]) refuse(err error) error {
	if m.failure != nil {
		return m.failure
	}
	misuse := asError(err)
	misuse.State = m.state
	return misuse
}

// checkFits checks the length of a message in bytes.
func (m *machine[S]) checkFits(t Type, length int) error {
	if length > m.limits.MaxMessage {
		return tooLarge(t, "the message has", uint64(length), uint64(max(0, m.limits.MaxMessage)))
	}
	return nil
}

// sendIf returns a message that was appended to dst, if that is allowed, it is not too long, and its effect does not
// fail. Otherwise it refuses the call, and returns dst.
func (m *machine[S]) sendIf(allowed error, dst, msg []byte, effect func() error) ([]byte, error) {
	sent := msg[len(dst):]
	t := TypeOf(sent)
	err := allowed
	if err == nil && outlineOf(t).items > 0 && OutlineOf(sent).Items == 0 {
		err = malformed(t, "an empty list")
	}
	if err == nil {
		err = m.checkFits(t, len(sent))
	}
	if err == nil {
		err = effect()
	}
	if err != nil {
		return dst, m.refuse(err)
	}
	return msg, nil
}

// listHead returns the codec of a message that begins with its list, for sendSome.
func listHead(dst []byte, t Type) codec {
	c := sending(dst, t)
	c.list(0)
	return c
}

// sendSome is sendIf for a message with as many elements as fit and as accept permits, at least one, after its head.
// It returns their number.
func sendSome[S sessionState, T any](
	m *machine[S], allowed error, head codec, list []T, fields func(*T, codec) codec, accept func(*T) error,
) (msg []byte, used int, err error) {
	if err = allowed; err == nil && len(list) == 0 {
		err = malformed(head.message, "an empty list")
	}
	for used < len(list) && err == nil {
		longer := fields(&list[used], head)
		err = m.checkFits(head.message, len(longer.bytes)-len(head.dst))
		if err == nil {
			err = accept(&list[used])
		}
		if err == nil {
			head, used = longer, used+1
		}
	}
	if used == 0 {
		return head.dst, 0, m.refuse(err)
	}
	binary.BigEndian.PutUint32(head.bytes[len(head.dst)+typeSize:], uint32(used))
	return head.bytes, used, nil
}
