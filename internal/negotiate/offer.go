package negotiate

// This file is the part of a Session that finds out whether both sides speak the native protocol.

// offers reports whether this side prefers the native protocol.
func (s *Session) offers() bool { return s.local.Native != nil }

// needsNative reports whether this side has what the reference protocol cannot copy, or cannot copy it by DMA.
func (s *Session) needsNative() bool {
	return s.offers() && s.local.Native.Flags&(FlagStream|FlagTree|FlagNoDMA) != 0
}

// answerOffer is the DPU's answer to a host that offers versions. The HELLOs then say which side has the file.
func (s *Session) answerOffer(offered Versions) (Step, error) {
	version, ok := s.local.Versions.common(offered)
	if !ok {
		failed := s.fail(noCommonVersion(s.local.Versions, offered, s.side))
		return Step{Reply: Direction{Offer: s.local.Versions.padding(refusalMark)}.Encode()}, failed
	}
	accepted := Versions{Min: version, Max: version}
	return s.handOver(version, Direction{Offer: accepted.padding(offerMark)}.Encode())
}

// parseAnswer handles the DPU's answer to the host's offer. answered is false for a reference DPU.
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

// resumeReference continues with a host whose DIRECTION only looked like an offer, and which sends an EXPORT like the
// reference program. That host has read the answer's zeros as "the DPU does not have the file", so the host must have
// it.
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
