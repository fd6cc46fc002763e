package wire

import (
	"encoding/binary"
	"fmt"
)

// sessionState is the type of the states of one protocol.
type sessionState interface {
	comparable
	fmt.Stringer
}

// Machine is what the sessions of all protocols have, for states of type S. It is not safe for concurrent use.
type Machine[S sessionState] struct {
	Limits  Limits
	State   S
	Failed  S      // the state of a session that has failed
	Failure *Error // why it has; otherwise nil
}

// Reached returns the state, or of a failed session the one in which it failed.
func (m *Machine[S]) Reached() S {
	if m.Failure != nil {
		if state, is := m.Failure.State.(S); is {
			return state
		}
	}
	return m.State
}

// Fail ends the session in its state, and returns the failure.
func (m *Machine[S]) Fail(failure *Error) error {
	failure.State = m.State
	return m.End(failure)
}

// End ends the session for a failure that has its state, and returns it.
func (m *Machine[S]) End(failure *Error) error {
	m.Failure, m.State = failure, m.Failed
	return failure
}

// Refuse returns the error for a call that is not possible. Nothing was sent, so the state stays.
func (m *Machine[S]) Refuse(err error) error {
	if m.Failure != nil {
		return m.Failure
	}
	misuse := AsError(err)
	misuse.State = m.State
	return misuse
}

// CheckFits checks the length of a message to send in bytes. It fails with ErrTooLarge.
func (m *Machine[S]) CheckFits(t Type, length int) error {
	if length > m.Limits.MaxMessage {
		return TooLarge(t, "the message has", uint64(length), uint64(max(0, m.Limits.MaxMessage)))
	}
	return nil
}

// SendIf returns a message that was appended to dst, if that is allowed, it is not too long, and its effect does not
// fail. Otherwise it refuses the call, and returns dst.
func (m *Machine[S]) SendIf(allowed error, dst, msg []byte, effect func() error) ([]byte, error) {
	sent := msg[len(dst):]
	t := TypeOf(sent)
	err := allowed
	if err == nil && outlineOf(t).items > 0 && OutlineOf(sent).Items == 0 {
		err = Malformed(t, "an empty list")
	}
	if err == nil {
		err = m.CheckFits(t, len(sent))
	}
	if err == nil {
		err = effect()
	}
	if err != nil {
		return dst, m.Refuse(err)
	}
	return msg, nil
}

// ListHead returns the codec of a message that begins with its list, for SendSome.
func ListHead(dst []byte, t Type) Codec {
	c := Sending(dst, t)
	c.List(0)
	return c
}

// SendSome is SendIf for a message with as many elements as fit and as accept permits, at least one, after its head.
// It returns their number.
func SendSome[S sessionState, T any](
	m *Machine[S], allowed error, head Codec, list []T, fields func(*T, Codec) Codec, accept func(*T) error,
) (msg []byte, used int, err error) {
	if err = allowed; err == nil && len(list) == 0 {
		err = Malformed(head.message, "an empty list")
	}
	for used < len(list) && err == nil {
		longer := fields(&list[used], head)
		err = m.CheckFits(head.message, len(longer.bytes)-len(head.dst))
		if err == nil {
			err = accept(&list[used])
		}
		if err == nil {
			head, used = longer, used+1
		}
	}
	if used == 0 {
		return head.dst, 0, m.Refuse(err)
	}
	binary.BigEndian.PutUint32(head.bytes[len(head.dst)+TypeSize:], uint32(used))
	return head.bytes, used, nil
}

// RuleOf returns the rule for a type of messages in a table by type, or the zero one.
func RuleOf[R any](rules []R, t Type) (rule R) {
	if 0 <= t && int(t) < len(rules) {
		rule = rules[t]
	}
	return rule
}

// Unexpected returns why a message that no rule permits ends the session.
func Unexpected(t Type, length int) *Error {
	if !t.Known() {
		return Malformed(t, "unknown type, in %d bytes", length)
	}
	return OutOfOrder(t)
}

// StateSet is a set of states of one protocol, whose numbers are below 32.
type StateSet[S ~uint8] uint32

// States returns the set of the states.
func States[S ~uint8](list ...S) StateSet[S] {
	var set StateSet[S]
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

// Has reports whether the state is in the set.
func (set StateSet[S]) Has(s S) bool { return set>>s&1 == 1 }
