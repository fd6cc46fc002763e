package reference

import (
	"fmt"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// offers reports whether this side prefers the native protocol.
func (s *Session) offers() bool { return s.local.Native != nil }

// needsNative reports whether this side has what the reference protocol cannot copy, or cannot copy it by DMA.
func (s *Session) needsNative() bool {
	return s.offers() && s.local.Native.Needed()
}

// answerOffer is the DPU's answer to a host that offers versions. The HELLOs then say which side has the file.
func (s *Session) answerOffer(offered wire.Versions) (Step, error) {
	own := s.local.Native.Versions()
	version, ok := own.Common(offered)
	if !ok {
		failed := s.machine.Fail(noCommonVersion(own, offered, s.side))
		return Step{Reply: Direction{Offer: padding(refusalMark, own)}.Encode()}, failed
	}
	accepted := wire.Versions{Min: version, Max: version}
	return s.handOver(version, Direction{Offer: padding(offerMark, accepted)}.Encode())
}

// parseAnswer handles the DPU's answer to the host's offer. answered is false for a reference DPU.
func (s *Session) parseAnswer(answer Direction) (step Step, err error, answered bool) {
	own := s.local.Native.Versions()
	if accepted, ok := parseVersions(offerMark, answer.Offer); ok && accepted.Min == accepted.Max {
		if version, ok := own.Common(accepted); ok {
			step, err = s.handOver(version, nil)
			return step, err, true
		}
	}
	if spoken, ok := parseVersions(refusalMark, answer.Offer); ok {
		if _, inCommon := own.Common(spoken); !inCommon {
			return Step{}, s.machine.Fail(noCommonVersion(own, spoken, s.side)), true
		}
	}
	return Step{}, nil, false
}

func (s *Session) handOver(version uint8, reply []byte) (Step, error) {
	if err := s.local.Native.Begin(s, s.side, version, s.machine.Limits); err != nil {
		return s.failWithNotice(wire.AsError(err))
	}
	s.machine.State = HandedOver
	step := Step{Reply: reply, Event: ToNative, Version: version}
	if s.hostDirection.FileInHost {
		step.Size = s.hostDirection.Size
	}
	return step, nil
}

// Resume continues with a host whose DIRECTION only looked like an offer, and which sends an EXPORT like the reference
// program. That host has read the answer's zeros as "the DPU does not have the file", so the host must have it. The
// native session calls it; the caller then finds the step in Resumed.
func (s *Session) Resume(export []byte) (reply []byte, err error) {
	s.resumed, err = s.resume(export)
	return s.resumed.Reply, err
}

// Resumed returns what is to be done after ToReference: Exported, together with the Agreement.
func (s *Session) Resumed() Step { return s.resumed }

func (s *Session) resume(export []byte) (Step, error) {
	s.machine.State = AwaitDirection
	if err := s.checkPlacement(s.hostDirection); err != nil {
		return s.failWithNotice(err)
	}
	if !s.hostDirection.FileInHost {
		return s.failWithNotice(wire.WrongTurn(wire.TypeExport, "the host does not know the size of the file"))
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

// The first of a DIRECTION's three padding bytes. The other two are a range of versions; zeros are no offer.
const (
	offerMark   = 0xDC // the host offers a range; the DPU accepts one version of it
	refusalMark = 0xDD // the DPU supports no version of the host's range, and says which it supports
)

// noVersions is the padding of a dma-copy that speaks the reference protocol only. It is not a valid range and thus
// no offer.
var noVersions = [3]byte{offerMark, 0, 0}

// marked reports whether a DIRECTION's padding says that the peer is a dma-copy.
func marked(padding [3]byte) bool {
	_, offers := parseVersions(offerMark, padding)
	_, refuses := parseVersions(refusalMark, padding)
	return offers || refuses || padding == noVersions
}

func padding(mark byte, v wire.Versions) [3]byte { return [3]byte{mark, v.Min, v.Max} }

// parseVersions returns the range in a DIRECTION's padding. A reference peer may leave any bytes there.
func parseVersions(mark byte, padding [3]byte) (wire.Versions, bool) {
	v := wire.Versions{Min: padding[1], Max: padding[2]}
	return v, padding[0] == mark && v.Valid()
}

func noCommonVersion(own, peer wire.Versions, side wire.Side) *wire.Error {
	return &wire.Error{Message: wire.TypeDirection, Err: wire.ErrVersion,
		Detail: fmt.Sprintf("the %s supports %s, the %s %s", side, own, side.Other(), peer)}
}
