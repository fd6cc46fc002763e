package wire

// StateSet is a set of states of one protocol, whose numbers are below 32.
type StateSet[S ~uint8] uint32

// States returns the set of the states.
func States[S ~uint8](list ...S) StateSet[S] {
	var set StateSet[S]
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

// Has reports whether the state is in the set.
func (set StateSet[S]) Has(s S) bool { return set>>s&1 == 1 }
