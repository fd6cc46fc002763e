package negotiate

import "encoding/binary"

// machine is what the sessions of all protocols have.
type machine struct {
	limits  Limits
	state   State
	failure *Error // why the state is Failed
}

// State returns the session's state.
func (m *machine) State() State { return m.state }

// Reached returns State, or of a failed session the state in which it failed.
func (m *machine) Reached() State {
	if m.state == Failed {
		return m.failure.State
	}
	return m.state
}

func (m *machine) fail(failure *Error) error {
	failure.State = m.state
	m.failure, m.state = failure, Failed
	return failure
}

// refuse returns the error for a call that is not possible. Nothing was sent, so the state stays.
func (m *machine) refuse(err error) error {
	if m.state == Failed {
		return m.failure
	}
	misuse := asError(err)
	misuse.State = m.state
	return misuse
}

func (m *machine) checkFits(t Type, length int) error {
	if length > m.limits.MaxMessage {
		return tooLarge(t, "the message has", uint64(length), uint64(max(0, m.limits.MaxMessage)))
	}
	return nil
}

// sendIf returns a message that was appended to dst, if that is allowed, it is not too long, and its effect does not
// fail. Otherwise it refuses the call, and returns dst.
func (m *machine) sendIf(allowed error, dst, msg []byte, effect func() error) ([]byte, error) {
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
func sendSome[T any](
	m *machine, allowed error, head codec, list []T, fields func(*T, codec) codec, accept func(*T) error,
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

// stateSet is a set of states.
type stateSet uint32

func states(list ...State) stateSet {
	var set stateSet
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

func (set stateSet) has(s State) bool { return set>>s&1 == 1 }
