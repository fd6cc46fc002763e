package negotiate

// Supported is the range of versions that this package speaks.
var Supported = Versions{Min: 2, Max: 2}

// Offer is what a reference session offers to a peer, and keeps if the peer takes it.
type Offer struct {
	Own     Hello          // its Version is ignored
	Session *NativeSession // after ToNative, not started
	Range   Versions       // to offer; zero for Supported
}

// Versions returns the versions to offer.
func (o *Offer) Versions() Versions {
	if o.Range == (Versions{}) {
		return Supported
	}
	return o.Range
}

// Needed reports whether this side has what the reference protocol cannot copy, or cannot copy it by DMA.
func (o *Offer) Needed() bool { return o.Own.Flags&(FlagStream|FlagTree|FlagNoDMA) != 0 }

// Begin creates the session that continues after s. It fails as NewNative does.
func (o *Offer) Begin(s *Session, side Side, version uint8, limits Limits) error {
	native, err := NewNative(side, version, o.Own, limits)
	if err != nil {
		return err
	}
	native.reference = s
	o.Session = native
	return nil
}
