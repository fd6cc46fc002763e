package service

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Receive processes one message of the peer and retains no reference to it. After an error the session has failed; the
// Reply tells the command why, with the code that Refusal has. A daemon that has ended the session ignores everything.
// Receive does not allocate for messages of the native session, CLOSE, PING, PONG and WORKING.
func (s *Session) Receive(msg []byte) (Step, error) {
	switch {
	case s.machine.State == Failed:
		return Step{}, s.machine.Failure
	case s.machine.State == Done:
		return Step{}, nil
	case len(msg) > max(s.machine.Limits.MaxMessage, PingHeader+s.apart):
		return s.failWithNotice(wire.Malformed(0, "%d bytes, limit %d", len(msg), s.machine.Limits.MaxMessage))
	}
	step, err := s.dispatch(wire.TypeOf(msg), msg)
	if err != nil {
		return s.failWithNotice(err)
	}
	return step, nil
}

func (s *Session) dispatch(t wire.Type, msg []byte) (Step, error) {
	if isNative(t) && copyReceived.Has(s.machine.State) {
		return s.receiveNative(msg), nil
	}
	if r := ruleOf(s.role.Other(), t); r.received.Has(s.machine.State) {
		return r.handle(s, msg)
	}
	return Step{}, wire.Unexpected(t, len(msg))
}

// receive decodes a message, and lets it take effect.
func receive[T any](
	msg []byte, t wire.Type, fields func(*T, wire.Codec) wire.Codec, effect func(T) error,
) (T, error) {
	received, err := wire.Decode(msg, t, fields)
	if err == nil {
		err = effect(received)
	}
	return received, err
}

// failWithNotice ends the session. The command has no message for that: it disconnects.
func (s *Session) failWithNotice(err error) (Step, error) {
	failure := wire.AsError(err)
	failure.State = s.machine.State
	var reply []byte
	if s.role == Daemon {
		code := wire.AbortProtocol
		if errors.Is(failure, wire.ErrTooLarge) {
			code = wire.AbortLimit
		}
		reply = AppendRefused(nil, Refusal{Code: code, Text: failure.Error(), Final: true}, s.machine.Limits.MaxMessage)
	}
	return Step{Reply: reply}, s.machine.Fail(failure)
}

// receiveNative ignores what was sent before the peer knew that this side's native session has ended.
func (s *Session) receiveNative(msg []byte) Step {
	if s.machine.State == Closing {
		return Step{}
	}
	return Step{Event: PeerNative, Native: msg}
}

// receiveGreeting chooses the version and answers the command.
func (s *Session) receiveGreeting(msg []byte) (Step, error) {
	peer, err := s.decodeGreeting(msg)
	if err != nil {
		return Step{}, err
	}
	if peer.Version != 0 || peer.Authenticates {
		return Step{}, wire.Malformed(wire.TypeGreeting, "version %d chosen by the command", peer.Version)
	}
	s.own.Version, _ = s.own.Versions.Common(peer.Versions)
	s.peer, s.machine.State = peer, Ready
	return Step{Event: Greeted, Reply: AppendGreeting(nil, s.own)}, nil
}

// receiveAnswer checks the daemon's choice.
func (s *Session) receiveAnswer(msg []byte) (Step, error) {
	peer, err := s.decodeGreeting(msg)
	if err != nil {
		return Step{}, err
	}
	if common, _ := s.own.Versions.Common(peer.Versions); peer.Version != common {
		return Step{}, wire.Malformed(wire.TypeGreeting, "version %d chosen instead of %d", peer.Version, common)
	}
	s.peer, s.machine.State = peer, Ready
	return Step{Event: Greeted}, nil
}

// decodeGreeting looks at the versions first, because the rest may have another form in another version.
func (s *Session) decodeGreeting(msg []byte) (Greeting, error) {
	versions, err := decodeVersions(msg)
	if err != nil {
		return Greeting{}, err
	}
	if _, ok := s.own.Versions.Common(versions); !ok {
		return Greeting{}, noCommonVersion(s.role, s.own.Versions, versions)
	}
	return wire.Decode(msg, wire.TypeGreeting, (*Greeting).fields)
}

func (s *Session) receiveRefused(msg []byte) (Step, error) {
	refusal, err := DecodeRefused(msg)
	switch {
	case err != nil:
		return Step{}, err
	case refusal.Final:
		return Step{}, &wire.Error{Message: wire.TypeRefused, Err: refusal}
	case !refusedStates.Has(s.machine.State):
		return Step{}, wire.OutOfOrder(wire.TypeRefused)
	}
	s.machine.State = Ready
	return Step{Event: Refused, Refusal: refusal}, nil
}

func (s *Session) receiveItems(msg []byte) (Step, error) {
	items, err := wire.DecodeList(s.reused.items[:0], msg, wire.TypeItems, (*Item).fields)
	s.reused.items = items
	for i := range items {
		if err := s.addItem(&items[i]); err != nil {
			return Step{}, err
		}
	}
	if err != nil {
		return Step{}, err
	}
	s.machine.State = Preparing
	return Step{Event: PeerItems, Items: items}, nil
}

func (s *Session) receiveCopy(msg []byte) (Step, error) {
	c, err := receive(msg, wire.TypeCopy, (*CopyRequest).fields, s.beginCopy)
	return Step{Event: CopyRequested, Copy: c}, err
}

func (s *Session) receiveAccepted(msg []byte) (Step, error) {
	a, err := receive(msg, wire.TypeAccepted, (*Accepted).fields, s.accept)
	return Step{Event: CopyAccepted, Accepted: a}, err
}

func (s *Session) receiveClose(msg []byte) (Step, error) {
	err := wire.DecodeEmpty(msg, wire.TypeClose)
	if err == nil {
		err = s.close(PeerClosing, Closing)
	}
	return Step{Event: PeerClosed}, err
}

func (s *Session) receiveList(msg []byte) (Step, error) {
	l, err := receive(msg, wire.TypeList, (*ListRequest).fields, s.beginList)
	return Step{Event: ListRequested, List: l}, err
}

func (s *Session) receiveListed(msg []byte) (Step, error) {
	entries, err := wire.DecodeList(s.reused.listed[:0], msg, wire.TypeListed, (*Listed).fields)
	s.reused.listed = entries
	for i := range entries {
		if err := s.list.add(&entries[i]); err != nil {
			return Step{}, err
		}
	}
	return Step{Event: PeerListed, Listed: entries}, err
}

func (s *Session) receiveListEnd(msg []byte) (Step, error) {
	end, err := receive(msg, wire.TypeListEnd, (*ListEnd).fields, s.endList)
	return Step{Event: PeerListEnd, ListEnd: end}, err
}

func (s *Session) receiveRemove(msg []byte) (Step, error) {
	r, err := DecodeRemove(s.reused.paths[:0], msg)
	if err == nil {
		err = s.machine.CheckFits(wire.TypeRemoved, wire.ListSize+removedSize*len(r.Paths))
	}
	if err != nil {
		return Step{}, err
	}
	s.reused.paths, s.removals, s.machine.State = r.Paths, len(r.Paths), Removing
	return Step{Event: RemoveRequested, Remove: r}, nil
}

func (s *Session) receiveRemoved(msg []byte) (Step, error) {
	results, err := wire.DecodeList(s.reused.removed[:0], msg, wire.TypeRemoved, (*Removal).fields)
	if err == nil {
		err = s.endRemoval(results)
	}
	s.reused.removed = results
	return Step{Event: PeerRemoved, Removed: results}, err
}

func (s *Session) receivePing(msg []byte) (Step, error) {
	p, err := DecodePing(msg)
	if err != nil {
		return Step{}, err
	}
	if p.Number != s.pings {
		return Step{}, wire.Malformed(wire.TypePing, "number %d instead of %d", p.Number, s.pings)
	}
	s.beginPing(p)
	return Step{Event: Pinged, Ping: p}, nil
}

func (s *Session) receivePong(msg []byte) (Step, error) {
	p, err := decodePing(msg, wire.TypePong)
	if err == nil {
		err = s.checkPong(p)
	}
	if err != nil {
		return Step{}, err
	}
	s.machine.State = Ready
	return Step{Event: RoundTrip, Ping: p}, nil
}

func (s *Session) receiveWorking(msg []byte) (Step, error) {
	ahead, err := DecodeWorking(msg)
	return Step{Event: PeerWorking, Ahead: ahead}, err
}
