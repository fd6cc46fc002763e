package wire

import "fmt"

// Versions is a range of versions of a protocol, from Min to Max inclusive, starting at 1.
type Versions struct {
	Min, Max uint8
}

// String returns, for example, "version 1" or "versions 1 to 3".
func (v Versions) String() string {
	if v.Min == v.Max {
		return fmt.Sprintf("version %d", v.Min)
	}
	return fmt.Sprintf("versions %d to %d", v.Min, v.Max)
}

func (v Versions) Valid() bool { return 1 <= v.Min && v.Min <= v.Max }

// Common returns the highest version in both ranges.
func (v Versions) Common(w Versions) (version uint8, ok bool) {
	version = min(v.Max, w.Max)
	return version, version >= max(v.Min, w.Min)
}
