package negotiate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
)

const (
	relaySize    = 112 // without shares and paths
	relayingSize = 16
	relayedSize  = 52 // without the text

	relayedUpToDate = 1 // the only flag of a RELAYED
)

// MaxRelayIdle is the longest idle timeout of a RELAY in milliseconds: a day.
const MaxRelayIdle = 24 * 60 * 60 * 1000

// relayFlags are those of a RelayRequest.
const relayFlags = pushFlags &^ CopyIgnoreExisting

// Sum is a digest of a whole file.
type Sum struct {
	Digest Digest
	Value  [MaxDigestSize]byte // Digest.Size() bytes, and zeros
}

// String returns, for example, "blake3:af13...", or "none".
func (s Sum) String() string {
	if s.Digest == DigestNone {
		return s.Digest.String()
	}
	return fmt.Sprintf("%s:%x", s.Digest, s.Value[:s.Digest.Size()])
}

// detectsForgery reports whether s is by an algorithm with which nobody finds another file of the same digest.
func (s Sum) detectsForgery() bool { return s.Digest == DigestBLAKE3 || s.Digest == DigestSHA256 }

// RelayRequest is the content of a RELAY: one file in a share of the daemon, which the daemon is to push to another
// daemon with its own key.
type RelayRequest struct {
	Source Place  // at the daemon that is asked
	Size   uint64 // bytes that the source must have, at most MaxSize
	Sum    Sum    // that the source must have; by DigestBLAKE3 or DigestSHA256

	Address    netip.AddrPort // of the target: a unicast address without a zone, and a port
	Key        [32]byte       // public key that the target must prove
	Target     Place          // at the target
	Flags      CopyFlags      // CopyOverwrite, CopyBackup, CopyNoResume and CopyMakePath
	Durability Durability     // of the target, at least
	// Idle is the time without progress in milliseconds after which the daemon gives up, at most MaxRelayIdle; 0: its
	// own. The shorter one is used.
	Idle uint32
}

// AppendRelay appends a RELAY without checking it.
func AppendRelay(dst []byte, r RelayRequest) []byte {
	address := r.Address.Addr().As16()
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeRelay), uint32(r.Flags))
	dst = binary.BigEndian.AppendUint64(dst, r.Size)
	dst = append(dst, byte(r.Sum.Digest), byte(r.Durability), byte(len(r.Source.Share)), byte(len(r.Target.Share)))
	for _, number := range [...]int{len(r.Source.Path), len(r.Target.Path), 0, int(r.Address.Port())} {
		dst = binary.BigEndian.AppendUint16(dst, uint16(number))
	}
	dst = binary.BigEndian.AppendUint32(dst, r.Idle)
	dst = append(append(append(dst, address[:]...), r.Key[:]...), r.Sum.Value[:]...)
	for _, text := range [...]string{r.Source.Share, r.Source.Path, r.Target.Share, r.Target.Path} {
		dst = append(dst, text...)
	}
	return dst
}

// DecodeRelay decodes a RELAY and checks all its values. It fails with ErrMalformed.
func DecodeRelay(msg []byte) (RelayRequest, error) {
	if err := checkType(msg, TypeRelay, relaySize); err != nil {
		return RelayRequest{}, err
	}
	lengths := [...]int{
		int(msg[18]), int(binary.BigEndian.Uint16(msg[20:])), int(msg[19]), int(binary.BigEndian.Uint16(msg[22:])),
	}
	total := 0
	for _, length := range lengths {
		total += length
	}
	err := firstError(
		checkTail(msg, TypeRelay, relaySize, uint64(total)),
		checkPadding(TypeRelay, msg[24:26]),
	)
	if err != nil {
		return RelayRequest{}, err
	}
	var texts [len(lengths)]string
	rest := string(msg[relaySize:])
	for i, length := range lengths {
		texts[i], rest = rest[:length], rest[length:]
	}
	address := netip.AddrFrom16([16]byte(msg[32:])).Unmap()
	r := RelayRequest{
		Source: Place{texts[0], texts[1]}, Size: binary.BigEndian.Uint64(msg[8:]),
		Sum:     Sum{Digest(msg[16]), [MaxDigestSize]byte(msg[80:])},
		Address: netip.AddrPortFrom(address, binary.BigEndian.Uint16(msg[26:])), Key: [32]byte(msg[48:]),
		Target: Place{texts[2], texts[3]}, Flags: CopyFlags(binary.BigEndian.Uint32(msg[4:])),
		Durability: Durability(msg[17]), Idle: binary.BigEndian.Uint32(msg[28:]),
	}
	if err := r.check(); err != nil {
		return RelayRequest{}, err
	}
	return r, nil
}

func (r *RelayRequest) length() int {
	return relaySize + len(r.Source.Share) + len(r.Source.Path) + len(r.Target.Share) + len(r.Target.Path)
}

func (r *RelayRequest) check() error {
	address := r.Address.Addr()
	switch {
	case r.Flags&^relayFlags != 0:
		return malformed(TypeRelay, "unknown flags %#x", uint32(r.Flags&^relayFlags))
	case r.Size > MaxSize:
		return malformed(TypeRelay, "a file of %d bytes, limit %d", r.Size, uint64(MaxSize))
	case !r.Sum.detectsForgery():
		return malformed(TypeRelay, "a digest by %s", r.Sum.Digest)
	case !r.Durability.Known():
		return malformed(TypeRelay, "unknown %s", r.Durability)
	case !address.IsValid(), address.Is4In6(), address.Zone() != "", address.IsUnspecified(), address.IsMulticast(),
		r.Address.Port() == 0:
		return malformed(TypeRelay, "the address %s, to which nothing can be sent", r.Address)
	case r.Key == [32]byte{}:
		return malformed(TypeRelay, "no key of the target")
	case r.Idle > MaxRelayIdle:
		return malformed(TypeRelay, "an idle timeout of %d ms, limit %d", r.Idle, MaxRelayIdle)
	case r.Source.Path == "":
		return malformed(TypeRelay, "a share as the source")
	case r.Flags.Has(CopyBackup) && !r.Flags.Has(CopyOverwrite):
		return malformed(TypeRelay, "a backup without overwrite")
	}
	return firstError(r.Source.check(TypeRelay), r.Target.check(TypeRelay))
}

// AppendRelaying appends a RELAYING. moved is the number of bytes that the target has so far.
func AppendRelaying(dst []byte, moved uint64) []byte {
	return binary.BigEndian.AppendUint64(appendPadding(appendType(dst, TypeRelaying), 4), moved)
}

// DecodeRelaying decodes a RELAYING. It fails with ErrMalformed.
func DecodeRelaying(msg []byte) (moved uint64, err error) {
	if err := checkFixed(msg, TypeRelaying, relayingSize); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(msg[8:]), checkPadding(TypeRelaying, msg[4:8])
}

// Relayed is the content of a RELAYED: how the push of a RELAY has ended.
type Relayed struct {
	Code     AbortCode // 0: the target has the file; otherwise one of the constants
	Text     string    // why not, at most MaxAbortText bytes as received, any bytes; empty with Code 0
	UpToDate bool      // the target had the file already; only with Code 0
	Bytes    uint64    // that were transferred, at most the size of the file
	Sum      Sum       // of the file at the target, that of the RELAY; zero unless Code is 0
}

// Err returns a *RelayFailure, or nil with Code 0.
func (r Relayed) Err() error {
	if r.Code == 0 {
		return nil
	}
	return &RelayFailure{r.Code, r.Text}
}

// RelayFailure is why a daemon that has accepted a RELAY could not push the file.
type RelayFailure struct {
	Code AbortCode // one of the constants
	Text string    // as received, at most MaxAbortText bytes; may contain any bytes
}

// Error quotes the text in ASCII, so that it cannot control a terminal or start a line in a log.
func (f *RelayFailure) Error() string {
	return fmt.Sprintf("the relay failed with code %d: %s", f.Code, strconv.QuoteToASCII(f.Text))
}

// AppendRelayed appends a RELAYED. It truncates the text to MaxAbortText bytes and replaces invalid UTF-8.
func AppendRelayed(dst []byte, r Relayed) []byte { return appendRelayed(dst, r, MaxAbortText) }

func appendRelayed(dst []byte, r Relayed, limit int) []byte {
	code, text := byte(0), ""
	if r.Code != 0 {
		code, text = byte(r.Code.known()), truncateText(r.Text, limit)
	}
	dst = append(appendType(dst, TypeRelayed), code, relayedUpToDate*wireBool(r.UpToDate))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(text)))
	dst = binary.BigEndian.AppendUint64(dst, r.Bytes)
	dst = append(dst, byte(r.Sum.Digest), 0, 0, 0)
	return append(append(dst, r.Sum.Value[:]...), text...)
}

// DecodeRelayed decodes a RELAYED. It checks everything that does not depend on the RELAY. It fails with ErrMalformed.
func DecodeRelayed(msg []byte) (Relayed, error) {
	if err := checkType(msg, TypeRelayed, relayedSize); err != nil {
		return Relayed{}, err
	}
	err := firstError(
		checkTail(msg, TypeRelayed, relayedSize, uint64(binary.BigEndian.Uint16(msg[6:]))),
		checkPadding(TypeRelayed, msg[17:20]),
	)
	if err != nil {
		return Relayed{}, err
	}
	if unknown := msg[5] &^ relayedUpToDate; unknown != 0 {
		return Relayed{}, malformed(TypeRelayed, "unknown flags %#x", unknown)
	}
	r := Relayed{
		Text: string(msg[relayedSize:]), UpToDate: msg[5] != 0, Bytes: binary.BigEndian.Uint64(msg[8:]),
		Sum: Sum{Digest(msg[16]), [MaxDigestSize]byte(msg[20:])},
	}
	if msg[4] != 0 {
		r.Code = AbortCode(msg[4]).known()
	}
	if err := r.check(); err != nil {
		return Relayed{}, err
	}
	return r, nil
}

func (r Relayed) check() error {
	switch {
	case len(r.Text) > MaxAbortText || r.Code == 0 && r.Text != "":
		return malformed(TypeRelayed, "a text of %d bytes with result %d", len(r.Text), r.Code)
	case r.Bytes > MaxSize:
		return malformed(TypeRelayed, "%d bytes, limit %d", r.Bytes, uint64(MaxSize))
	case r.Code != 0 && (r.UpToDate || r.Sum != Sum{}):
		return malformed(TypeRelayed, "a digest of what failed")
	case r.UpToDate && r.Bytes != 0:
		return malformed(TypeRelayed, "%d bytes of a file that the target had", r.Bytes)
	case r.Code == 0 && !r.Sum.detectsForgery():
		return malformed(TypeRelayed, "a digest by %s", r.Sum.Digest)
	}
	return nil
}

// relaying is how far the running RELAY has come.
type relaying struct {
	size, moved uint64
	sum         Sum
}

// checkMoved checks what a RELAYING says.
func (r relaying) checkMoved(moved uint64) error {
	if moved < r.moved || moved > r.size {
		return malformed(TypeRelaying, "%d of %d bytes after %d", moved, r.size, r.moved)
	}
	return nil
}

// checkEnd checks a RELAYED against the RELAY.
func (r relaying) checkEnd(end Relayed) error {
	switch {
	case end.Bytes > r.size:
		return malformed(TypeRelayed, "%d bytes of a file of %d", end.Bytes, r.size)
	case end.Code == 0 && (end.Sum.Digest != r.sum.Digest || !bytes.Equal(end.Sum.Value[:], r.sum.Value[:])):
		return malformed(TypeRelayed, "a file of digest %s instead of %s", end.Sum, r.sum)
	}
	return nil
}

// Relay appends a RELAY. It is called on the command in Ready. It fails with ErrMalformed, ErrTooLarge or
// ErrOutOfOrder.
func (s *Service) Relay(dst []byte, r RelayRequest) ([]byte, error) {
	err := s.mayCall(TypeRelay)
	if err == nil {
		err = firstError(r.check(), s.checkFits(TypeRelay, r.length()))
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.beginRelay(r)
	return AppendRelay(dst, r), nil
}

func (s *Service) beginRelay(r RelayRequest) {
	s.state, s.relay = Relaying, relaying{size: r.Size, sum: r.Sum}
}

// Relaying appends a RELAYING, a sign of life. It is called on the daemon after RelayRequested. It fails with
// ErrMalformed for fewer bytes than before, or more than the file has, and with ErrOutOfOrder.
func (s *Service) Relaying(dst []byte, moved uint64) ([]byte, error) {
	err := s.mayCall(TypeRelaying)
	if err == nil {
		err = s.relay.checkMoved(moved)
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.relay.moved = moved
	return AppendRelaying(dst, moved), nil
}

// Relayed appends a RELAYED. It is called on the daemon after RelayRequested. It fails with ErrMalformed, also for a
// success with another digest than that of the RELAY, and with ErrOutOfOrder.
func (s *Service) Relayed(dst []byte, r Relayed) ([]byte, error) {
	err := s.mayCall(TypeRelayed)
	if err == nil {
		r.Text = truncateText(r.Text, MaxAbortText)
		err = firstError(r.check(), s.relay.checkEnd(r))
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.state = Ready
	return appendRelayed(dst, r, min(MaxAbortText, s.limits.MaxMessage-relayedSize)), nil
}

func (s *Service) receiveRelay(msg []byte) (ServiceStep, error) {
	r, err := DecodeRelay(msg)
	if err != nil {
		return ServiceStep{}, err
	}
	s.beginRelay(r)
	return ServiceStep{Event: RelayRequested, Relay: r}, nil
}

func (s *Service) receiveRelaying(msg []byte) (ServiceStep, error) {
	moved, err := DecodeRelaying(msg)
	if err == nil {
		err = s.relay.checkMoved(moved)
	}
	if err != nil {
		return ServiceStep{}, err
	}
	s.relay.moved = moved
	return ServiceStep{Event: PeerRelaying, Moved: moved}, nil
}

func (s *Service) receiveRelayed(msg []byte) (ServiceStep, error) {
	r, err := DecodeRelayed(msg)
	if err == nil {
		err = s.relay.checkEnd(r)
	}
	if err != nil {
		return ServiceStep{}, err
	}
	s.state = Ready
	return ServiceStep{Event: PeerRelayed, Relayed: r}, nil
}
