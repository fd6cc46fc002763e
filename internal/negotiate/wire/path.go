package wire

import (
	"bytes"
	"strings"
)

// ValidName reports whether name is one component of a path, and neither "." nor "..".
func ValidName(name []byte) bool {
	if len(name) == 0 || len(name) > MaxName || bytes.IndexByte(name, '/') >= 0 || bytes.IndexByte(name, 0) >= 0 {
		return false
	}
	return string(name) != "." && string(name) != ".."
}

// ValidPath reports whether path consists of valid names and is at most MaxPath bytes long.
func ValidPath(path []byte) bool {
	if len(path) > MaxPath {
		return false
	}
	for more := true; more; {
		var name []byte
		if name, path, more = bytes.Cut(path, []byte{'/'}); !ValidName(name) {
			return false
		}
	}
	return true
}

// CutMark is where the beginning of a path was cut.
const CutMark = "..."

// CutPath cuts a path at its beginning, so that it fits in that many bytes, and in MaxLocationPath.
func CutPath(path string, room int) string {
	room = min(room, MaxLocationPath)
	switch {
	case len(path) <= room:
		return path
	case room < len(CutMark):
		return ""
	}
	return CutMark + path[len(path)-room+len(CutMark):]
}

func CheckLocationPath(t Type, path string) error {
	switch {
	case len(path) > MaxLocationPath:
		return Malformed(t, "a path of %d bytes, limit %d", len(path), MaxLocationPath)
	case strings.Contains(path, "\x00"):
		return Malformed(t, "a path with a NUL")
	}
	return nil
}
