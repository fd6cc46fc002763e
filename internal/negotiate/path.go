package negotiate

import (
	"bytes"
	"strings"
)

// validName reports whether name is one component of a path, and neither "." nor "..".
func validName(name []byte) bool {
	if len(name) == 0 || len(name) > MaxName || bytes.IndexByte(name, '/') >= 0 || bytes.IndexByte(name, 0) >= 0 {
		return false
	}
	return string(name) != "." && string(name) != ".."
}

// validPath reports whether path consists of valid names and is at most MaxPath bytes long.
func validPath(path []byte) bool {
	if len(path) > MaxPath {
		return false
	}
	for more := true; more; {
		var name []byte
		if name, path, more = bytes.Cut(path, []byte{'/'}); !validName(name) {
			return false
		}
	}
	return true
}

// cutMark is where the beginning of a path was cut.
const cutMark = "..."

// cutPath cuts a path at its beginning, so that it fits in that many bytes, and in MaxLocationPath.
func cutPath(path string, room int) string {
	room = min(room, MaxLocationPath)
	switch {
	case len(path) <= room:
		return path
	case room < len(cutMark):
		return ""
	}
	return cutMark + path[len(path)-room+len(cutMark):]
}

func checkLocationPath(t Type, path string) error {
	switch {
	case len(path) > MaxLocationPath:
		return malformed(t, "a path of %d bytes, limit %d", len(path), MaxLocationPath)
	case strings.Contains(path, "\x00"):
		return malformed(t, "a path with a NUL")
	}
	return nil
}
