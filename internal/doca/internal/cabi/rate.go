package cabi

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// rateForm is how a release of DOCA writes the rate of a port (doca_devinfo_get_active_rate): in eight bytes always.
type rateForm int

const (
	rateUnknown    rateForm = iota // the function must not be called
	rateInGigabits                 // a double in Gb/s
	rateInBits                     // an integer in bits per second
	rateInEither
)

// rateFormOf knows the headers of 2.7 (a double) and of 2.10 (an integer). In which of the releases between them the
// form changed is not documented.
func rateFormOf(release string) rateForm {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return rateUnknown
	}
	before := func(wanted ...int) bool { return slices.Compare([]int{major, minor}, wanted) < 0 }
	switch {
	case before(2, 7):
		return rateUnknown
	case before(2, 8):
		return rateInGigabits
	case before(2, 10):
		return rateInEither
	default:
		return rateInBits
	}
}

// noPortIsThatFast, in bits per second. As an integer, every double that can be meant as a rate is far above it, so that
// one form is never mistaken for the other.
const noPortIsThatFast = 1 << 60

// bitsPerSecond reads what the function wrote. 0: unknown.
func (f rateForm) bitsPerSecond(written uint64) uint64 {
	switch f {
	case rateInGigabits:
		return fromGigabits(written)
	case rateInBits:
		return fromBits(written)
	case rateInEither:
		return cmp.Or(fromBits(written), fromGigabits(written))
	default:
		return 0
	}
}

func fromBits(written uint64) uint64 {
	if written >= noPortIsThatFast {
		return 0
	}
	return written
}

func fromGigabits(written uint64) uint64 {
	rate := math.Round(math.Float64frombits(written) * 1e9)
	if !(rate >= 0 && rate < noPortIsThatFast) { // which NaN is not
		return 0
	}
	return uint64(rate)
}
