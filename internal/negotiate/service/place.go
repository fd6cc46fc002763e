package service

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// MaxShare is how many bytes the name of a share has at most.
const MaxShare = 64

// ValidShare reports whether name can be that of a share: 1 to MaxShare lower case letters, digits, '.', '_' and '-',
// of which neither '.' nor '-' is the first.
func ValidShare(name string) bool {
	if name == "" || len(name) > MaxShare || name[0] == '.' || name[0] == '-' {
		return false
	}
	for _, octet := range []byte(name) {
		lower, digit := 'a' <= octet && octet <= 'z', '0' <= octet && octet <= '9'
		if !lower && !digit && octet != '.' && octet != '_' && octet != '-' {
			return false
		}
	}
	return true
}

// ValidSharePath reports whether path can be that of something in a share: empty for the share's root, otherwise names
// of 1 to MaxName bytes, joined by '/', that are neither "." nor ".." and have no zero byte, at most MaxPath bytes
// together.
func ValidSharePath(path string) bool { return path == "" || wire.ValidPath([]byte(path)) }

// Place is where something is on the daemon's side.
type Place struct {
	Share string // as ValidShare requires
	Path  string // below the share, as ValidSharePath requires; may have any other bytes
}

func (p Place) check(t wire.Type) error {
	if !ValidShare(p.Share) {
		return wire.Malformed(t, "a name of %d bytes that no share can have", len(p.Share))
	}
	return checkSharePath(t, p.Path)
}

func checkSharePath(t wire.Type, path string) error {
	if !ValidSharePath(path) {
		return wire.Malformed(t, "a path of %d bytes that nothing in a share can have", len(path))
	}
	return nil
}
