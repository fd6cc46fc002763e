package negotiate

import "errors"

// This file handles the peer's messages in a Service.

// Receive processes one message of the peer and retains no reference to it. After an error the session has failed; the
// Reply tells the command why, with the code that Refusal has. A daemon that has ended the session ignores everything.
// Receive does not allocate for messages of the native session, CLOSE, PING, PONG and WORKING.
func (s *Service) Receive(msg []byte) (ServiceStep, error) {
	switch {
	case s.machine.state == Failed:
		return ServiceStep{}, s.machine.failure
	case s.machine.state == Done:
		return ServiceStep{}, nil
	case len(msg) > max(s.machine.limits.MaxMessage, ServicePingHeader+s.apart):
		return s.failWithNotice(malformed(0, "%d bytes, limit %d", len(msg), s.machine.limits.MaxMessage))
	}
	step, err := s.dispatch(TypeOf(msg), msg)
	if err != nil {
		return s.failWithNotice(err)
	}
	return step, nil
}

func (s *Service) dispatch(t Type, msg []byte) (ServiceStep, error) {
	if isNative(t) && copyReceived.has(s.machine.state) {
		return s.receiveNative(msg), nil
	}
	if r := serviceRuleOf(s.role.Other(), t); r.received.has(s.machine.state) {
		return r.handle(s, msg)
	}
	if !t.known() {
		return ServiceStep{}, malformed(t, "unknown type, in %d bytes", len(msg))
	}
	return ServiceStep{}, outOfOrder(t)
}

// failWithNotice ends the session. The command has no message for that: it disconnects.
func (s *Service) failWithNotice(err error) (ServiceStep, error) {
	failure := asError(err)
	failure.State = s.machine.state
	var reply []byte
	if s.role == Daemon {
		code := AbortProtocol
		if errors.Is(failure, ErrTooLarge) {
			code = AbortLimit
		}
		reply = s.appendRefused(nil, Refusal{Code: code, Text: failure.Error(), Final: true})
	}
	return ServiceStep{Reply: reply}, s.machine.fail(failure)
}

// receiveNative ignores what was sent before the peer knew that this side's native session has ended.
func (s *Service) receiveNative(msg []byte) ServiceStep {
	if s.machine.state == Closing {
		return ServiceStep{}
	}
	return ServiceStep{Event: PeerNative, Native: msg}
}

// receiveGreeting chooses the version and answers the command.
func (s *Service) receiveGreeting(msg []byte) (ServiceStep, error) {
	peer, err := s.decodeGreeting(msg)
	if err != nil {
		return ServiceStep{}, err
	}
	if peer.Version != 0 || peer.Authenticates {
		return ServiceStep{}, malformed(TypeServiceGreeting, "version %d chosen by the command", peer.Version)
	}
	s.own.Version, _ = s.own.Versions.common(peer.Versions)
	s.peer, s.machine.state = peer, Ready
	return ServiceStep{Event: Greeted, Reply: AppendServiceGreeting(nil, s.own)}, nil
}

// receiveAnswer checks the daemon's choice.
func (s *Service) receiveAnswer(msg []byte) (ServiceStep, error) {
	peer, err := s.decodeGreeting(msg)
	if err != nil {
		return ServiceStep{}, err
	}
	if common, _ := s.own.Versions.common(peer.Versions); peer.Version != common {
		return ServiceStep{}, malformed(TypeServiceGreeting, "version %d chosen instead of %d", peer.Version, common)
	}
	s.peer, s.machine.state = peer, Ready
	return ServiceStep{Event: Greeted}, nil
}

// decodeGreeting looks at the versions first, because the rest may have another form in another version.
func (s *Service) decodeGreeting(msg []byte) (ServiceGreeting, error) {
	versions, err := decodeServiceVersions(msg)
	if err != nil {
		return ServiceGreeting{}, err
	}
	if _, ok := s.own.Versions.common(versions); !ok {
		return ServiceGreeting{}, noCommonServiceVersion(s.role, s.own.Versions, versions)
	}
	return DecodeServiceGreeting(msg)
}

func (s *Service) receiveRefused(msg []byte) (ServiceStep, error) {
	refusal, err := DecodeRefused(msg)
	switch {
	case err != nil:
		return ServiceStep{}, err
	case refusal.Final:
		return ServiceStep{}, &Error{Message: TypeRefused, Err: refusal}
	case !refusedStates.has(s.machine.state):
		return ServiceStep{}, outOfOrder(TypeRefused)
	}
	s.machine.state = Ready
	return ServiceStep{Event: Refused, Refusal: refusal}, nil
}

func (s *Service) receiveItems(msg []byte) (ServiceStep, error) {
	items, err := DecodeItems(s.reused.items[:0], msg)
	s.reused.items = items
	for i := range items {
		if err := s.items.add(&items[i]); err != nil {
			return ServiceStep{}, err
		}
	}
	if err != nil {
		return ServiceStep{}, err
	}
	s.machine.state = Preparing
	return ServiceStep{Event: PeerItems, Items: items}, nil
}

func (s *Service) receiveCopy(msg []byte) (ServiceStep, error) {
	c, err := DecodeCopy(msg)
	if err == nil {
		err = s.beginCopy(c)
	}
	return ServiceStep{Event: CopyRequested, Copy: c}, err
}

func (s *Service) receiveAccepted(msg []byte) (ServiceStep, error) {
	a, err := DecodeAccepted(msg)
	if err == nil {
		err = s.accept(a)
	}
	return ServiceStep{Event: CopyAccepted, Accepted: a}, err
}

func (s *Service) receiveClose(msg []byte) (ServiceStep, error) {
	err := DecodeClose(msg)
	if err == nil {
		err = s.close(PeerClosing, Closing)
	}
	return ServiceStep{Event: PeerClosed}, err
}

func (s *Service) receiveList(msg []byte) (ServiceStep, error) {
	l, err := DecodeList(msg)
	if err == nil {
		err = s.beginList(l)
	}
	return ServiceStep{Event: ListRequested, List: l}, err
}

func (s *Service) receiveListed(msg []byte) (ServiceStep, error) {
	entries, err := DecodeListed(s.reused.listed[:0], msg)
	s.reused.listed = entries
	for i := range entries {
		if err := s.list.add(&entries[i]); err != nil {
			return ServiceStep{}, err
		}
	}
	return ServiceStep{Event: PeerListed, Listed: entries}, err
}

func (s *Service) receiveListEnd(msg []byte) (ServiceStep, error) {
	end, err := DecodeListEnd(msg)
	if err == nil {
		err = s.endList(end)
	}
	return ServiceStep{Event: PeerListEnd, ListEnd: end}, err
}

func (s *Service) receiveRemove(msg []byte) (ServiceStep, error) {
	r, err := DecodeRemove(s.reused.paths[:0], msg)
	if err == nil {
		err = s.machine.checkFits(TypeRemoved, listSize+removedSize*len(r.Paths))
	}
	if err != nil {
		return ServiceStep{}, err
	}
	s.reused.paths, s.removals, s.machine.state = r.Paths, len(r.Paths), Removing
	return ServiceStep{Event: RemoveRequested, Remove: r}, nil
}

func (s *Service) receiveRemoved(msg []byte) (ServiceStep, error) {
	results, err := DecodeRemoved(s.reused.removed[:0], msg)
	if err == nil {
		err = s.endRemoval(results)
	}
	s.reused.removed = results
	return ServiceStep{Event: PeerRemoved, Removed: results}, err
}

func (s *Service) receivePing(msg []byte) (ServiceStep, error) {
	p, err := DecodeServicePing(msg)
	if err != nil {
		return ServiceStep{}, err
	}
	if p.Number != s.pings {
		return ServiceStep{}, malformed(TypeServicePing, "number %d instead of %d", p.Number, s.pings)
	}
	s.beginPing(p)
	return ServiceStep{Event: Pinged, Ping: p}, nil
}

func (s *Service) receivePong(msg []byte) (ServiceStep, error) {
	p, err := DecodeServicePong(msg)
	if err == nil {
		err = s.checkPong(p)
	}
	if err != nil {
		return ServiceStep{}, err
	}
	s.machine.state = Ready
	return ServiceStep{Event: RoundTrip, Ping: p}, nil
}

func (s *Service) receiveWorking(msg []byte) (ServiceStep, error) {
	ahead, err := DecodeWorking(msg)
	return ServiceStep{Event: PeerWorking, Ahead: ahead}, err
}
