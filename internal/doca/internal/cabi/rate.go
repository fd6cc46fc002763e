package cabi

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// rateForm is the encoding of the rate of a port in a release of DOCA (doca_devinfo_get_active_rate), always in 8
// bytes.
type rateForm int

const (
	rateUnknown    rateForm = iota // the function must not be called
	rateInGigabits                 // a double in Gb/s
	rateInBits                     // an integer in bits per second
	rateInEither
)

// rateFormOf returns the form of a release: releases 2.7 (a double) and 2.10 (an integer) are documented, the ones
// between are not.
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

// maxRate is above the rate of any port, in bits per second. Every double that can be a rate, read as an integer, is
// far above it, so that one form is never mistaken for the other.
const maxRate = 1 << 60

// bitsPerSecond decodes what the function wrote. 0: unknown.
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
	if written >= maxRate {
		return 0
	}
	return written
}

func fromGigabits(written uint64) uint64 {
	rate := math.Round(math.Float64frombits(written) * 1e9)
	if !(rate >= 0 && rate < maxRate) { // also false for NaN
		return 0
	}
	return uint64(rate)
}
