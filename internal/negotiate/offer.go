package negotiate

// This file is the part of a Session in which the two sides find out whether both speak the native protocol.

// offers tells whether this side would rather speak the native protocol.
func (s *Session) offers() bool { return s.local.Native != nil }

func (s *Session) streams() bool { return s.offers() && s.local.Native.Flags.Has(FlagStream) }

// answerOffer is the DPU's answer to a host that offers versions. Who has the file is for the HELLOs to say.
func (s *Session) answerOffer(offered Versions) (Step, error) {
	version, ok := s.local.Versions.common(offered)
	if !ok {
		failed := s.fail(noCommonVersion(s.local.Versions, offered, s.side))
		return Step{Reply: Direction{Offer: s.local.Versions.padding(refusalMark)}.Encode()}, failed
	}
	accepted := Versions{Min: version, Max: version}
	return s.handOver(version, Direction{Offer: accepted.padding(offerMark)}.Encode())
}

// readAnswer is the host's look at what the DPU made of its offer. What is no answer comes from a reference DPU.
func (s *Session) parseAnswer(answer Direction) (step Step, err error, answered bool) {
	if accepted, ok := parseVersions(offerMark, answer.Offer); ok && accepted.Min == accepted.Max {
		if version, ok := s.local.Versions.common(accepted); ok {
			step, err = s.handOver(version, nil)
			return step, err, true
		}
	}
	if spoken, ok := parseVersions(refusalMark, answer.Offer); ok {
		if _, inCommon := s.local.Versions.common(spoken); !inCommon {
			return Step{}, s.fail(noCommonVersion(s.local.Versions, spoken, s.side)), true
		}
	}
	return Step{}, nil, false
}

func (s *Session) handOver(version uint8, reply []byte) (Step, error) {
	native, err := NewNative(s.side, version, *s.local.Native, s.limits)
	if err != nil {
		return s.failWithNotice(asError(err))
	}
	native.reference = s
	s.state = HandedOver
	step := Step{Reply: reply, Event: ToNative, Version: version, Native: native}
	if s.hostDirection.FileInHost {
		step.Size = s.hostDirection.Size
	}
	return step, nil
}

// takeBack goes on with a host whose DIRECTION only looked like an offer, and which exports as the reference does. That
// host took the answer's zeros for this side's word, so it has to be the one with the file.
func (s *Session) resumeReference(export []byte) (Step, error) {
	s.state = AwaitDirection
	if err := s.checkPlacement(s.hostDirection); err != nil {
		return s.failWithNotice(err)
	}
	if !s.hostDirection.FileInHost {
		return s.failWithNotice(&Error{Message: TypeExport, Err: ErrOutOfOrder,
			Detail: "the host does not know the size of the file"})
	}
	agreed, err := s.agree(s.hostDirection, nil)
	if err != nil {
		return agreed, err
	}
	step, err := s.Receive(export)
	if err == nil {
		step.Agreement = agreed.Agreement
	}
	return step, err
}
