package negotiate

// stateSet is a set of states of one protocol, whose numbers are below 32.
type stateSet[S ~uint8] uint32

// states returns the set of the states.
func states[S ~uint8](list ...S) stateSet[S] {
	var set stateSet[S]
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

// has reports whether the state is in the set.
func (set stateSet[S]) has(s S) bool { return set>>s&1 == 1 }
