package quantity

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// units are the units of Bytes, each 1024 times the one before.
var units = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// Bytes returns a number of bytes for people, in binary units and with one decimal below ten of a unit: 9 B, 1.5 KiB,
// 95 MiB. Halves are rounded up.
func Bytes(n uint64) string {
	power := max(bits.Len64(n)-1, 0) / 10
	value, decimals := float64(n)/float64(uint64(1)<<(10*power)), 0
	if power > 0 && value < 9.95 {
		decimals = 1
	}
	scale := math.Pow10(decimals)
	return strconv.FormatFloat(math.Floor(value*scale+0.5)/scale, 'f', decimals, 64) + " " + units[power]
}

// Comma returns a number with a comma between groups of three digits: 12,345.
func Comma(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var groups []string
	for ; len(digits) > 3; digits = digits[:len(digits)-3] {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

// Count returns a number, as Comma does, with what is counted, in the singular or the regular plural: 1 entry, 2
// entries.
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun = pluralOf(noun)
	}
	return Comma(int64(n)) + " " + noun
}

func pluralOf(noun string) string {
	stem, isY := strings.CutSuffix(noun, "y")
	switch {
	case isY && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeiou"):
		return stem + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"), strings.HasSuffix(noun, "ch"),
		strings.HasSuffix(noun, "sh"):
		return noun + "es"
	default:
		return noun + "s"
	}
}

// Age returns how long ago something was, in the largest unit that fits: 2 hours ago, 3 days ago. A time less than a
// second ago, or in the future, is "just now".
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{
		{365 * day, "year"}, {7 * day, "week"}, {day, "day"},
		{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"},
	} {
		if n := d / unit.length; n > 0 {
			return Count(int64(n), unit.name) + " ago"
		}
	}
	return "just now"
}

// longestRemaining is the longest time that Remaining returns as a number.
const longestRemaining = 99 * time.Hour

// Remaining returns how long an amount takes at a rate per second, rounded up to seconds: 6s, 3m25s, 2h0m0s. More than
// 99 hours are "days", also if the rate is 0.
func Remaining(left int64, rate float64) string {
	if rate <= 0 || float64(left)/rate > longestRemaining.Seconds() {
		return "days"
	}
	return (time.Duration(math.Ceil(float64(left)/rate)) * time.Second).String()
}
