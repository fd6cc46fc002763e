package negotiate

import "fmt"

// Versions is a range of versions of the native protocol, from Min to Max inclusive, starting at 1.
type Versions struct {
	Min, Max uint8
}

// Supported is the range of versions that this package speaks.
var Supported = Versions{Min: 2, Max: 2}

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

// String returns, for example, "version 1" or "versions 1 to 3".
func (v Versions) String() string {
	if v.Min == v.Max {
		return fmt.Sprintf("version %d", v.Min)
	}
	return fmt.Sprintf("versions %d to %d", v.Min, v.Max)
}

func (v Versions) valid() bool { return 1 <= v.Min && v.Min <= v.Max }

// common returns the highest version in both ranges.
func (v Versions) common(w Versions) (version uint8, ok bool) {
	version = min(v.Max, w.Max)
	return version, version >= max(v.Min, w.Min)
}

func (v Versions) padding(mark byte) [3]byte { return [3]byte{mark, v.Min, v.Max} }

// parseVersions returns the range in a DIRECTION's padding. A reference peer may leave any bytes there.
func parseVersions(mark byte, padding [3]byte) (Versions, bool) {
	v := Versions{Min: padding[1], Max: padding[2]}
	return v, padding[0] == mark && v.valid()
}

func noCommonVersion(own, peer Versions, side Side) *Error {
	return &Error{Message: TypeDirection, Err: ErrVersion,
		Detail: fmt.Sprintf("the %s supports %s, the %s %s", side, own, side.Other(), peer)}
}
