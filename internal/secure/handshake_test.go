package secure

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/identity"
)

var errStranger = errors.New("a stranger")

// only accepts one key.
func only(key identity.Public) func(identity.Public) error {
	return func(peer identity.Public) error {
		if peer != key {
			return errStranger
		}
		return nil
	}
}
