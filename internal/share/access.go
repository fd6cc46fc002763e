package share

import (
	"fmt"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Access is what a peer may do in a share: a set of Read and Write. The zero value allows nothing.
type Access uint8

// The rights.
const (
	Read      Access = 1 << iota // list, and receive from the share
	Write                        // send to the share, and remove
	ReadWrite = Read | Write
)

// Allows reports whether all of the wanted rights are in a.
func (a Access) Allows(wanted Access) bool { return a&wanted == wanted }

// String returns the form that ParseAccess reads; "none" without any right.
func (a Access) String() string {
	switch a {
	case 0:
		return "none"
	case Read:
		return "ro"
	case Write:
		return "wo"
	case ReadWrite:
		return "rw"
	default:
		return fmt.Sprintf("access %#x", uint8(a))
	}
}

// ParseAccess parses "ro", "wo" or "rw".
func ParseAccess(text string) (Access, error) {
	for _, a := range []Access{Read, Write, ReadWrite} {
		if text == a.String() {
			return a, nil
		}
	}
	return 0, fmt.Errorf("%s is not an access: give ro (read only), wo (write only) or rw", quote.Text(text))
}
