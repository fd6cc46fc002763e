package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Supported is the range of versions that this package speaks.
var Supported = wire.Versions{Min: 2, Max: 2}

// Offer is what a reference session offers to a peer, and keeps if the peer takes it.
type Offer struct {
	Own     Hello    // its Version is ignored
	Session *Session // after ToNative, not started
}

// Versions returns Supported.
func (*Offer) Versions() wire.Versions { return Supported }

// Needed reports whether this side has what the reference protocol cannot copy, or cannot copy it by DMA.
func (o *Offer) Needed() bool { return o.Own.Flags&(FlagStream|FlagTree|FlagNoDMA) != 0 }

// Begin creates the session that continues after s. It fails as New does.
func (o *Offer) Begin(s *reference.Session, side wire.Side, version uint8, limits wire.Limits) error {
	native, err := New(side, version, o.Own, limits)
	if err != nil {
		return err
	}
	native.reference = s
	o.Session = native
	return nil
}
