package quantity

import (
	"math"
	"regexp"
	"sync"
	"time"
)

// number matches a number and its unit in a duration.
const number = `(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w)`

// The patterns are compiled on first use, because most durations need neither.
var (
	numbers  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(number) })
	duration = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-+]?(` + number + `)+$`) })
)

// hours has the units that time.ParseDuration does not know.
var hours = map[string]time.Duration{"d": 24, "w": 7 * 24}

// ParseDuration is time.ParseDuration with days (d, of 24 hours) and weeks (w): 1d, 1.5d, 2d12h, -1w. It returns
// ErrSyntax or ErrRange, the latter for more than 292 years.
func ParseDuration(text string) (time.Duration, error) {
	if plain, err := time.ParseDuration(text); err == nil {
		return plain, nil
	}
	if !duration().MatchString(text) {
		return 0, ErrSyntax
	}
	var total time.Duration
	for _, match := range numbers().FindAllStringSubmatch(text, -1) {
		unit, factor := match[2], time.Duration(1)
		if hours[unit] > 0 {
			unit, factor = "h", hours[unit]
		}
		part, err := time.ParseDuration(match[1] + unit)
		if err != nil || part > (math.MaxInt64-total)/factor {
			return 0, ErrRange
		}
		total += factor * part
	}
	if text[0] == '-' {
		total = -total
	}
	return total, nil
}

// Moment is a point in time: an age, or a time that does not change. The zero value is none.
type Moment struct {
	Age  time.Duration // before now; unless At is set
	Time time.Time
}

// ParseMoment parses an age, as ParseDuration does but not negative, or a time: 2026-01-31T12:00:00Z as in RFC 3339, or
// the beginning of a day of this time zone, 2026-01-31. The age of 0 is the zero Moment. It returns ErrSyntax or
// ErrRange, the latter for what is not within 292 years of 1970.
func ParseMoment(text string) (Moment, error) {
	for layout, in := range map[string]*time.Location{time.RFC3339: time.UTC, time.DateOnly: time.Local} {
		if at, err := time.ParseInLocation(layout, text, in); err == nil {
			if !time.Unix(0, at.UnixNano()).Equal(at) {
				return Moment{}, ErrRange
			}
			return Moment{Time: at}, nil
		}
	}
	age, err := ParseDuration(text)
	if err == nil && age < 0 {
		err = ErrSyntax
	}
	return Moment{Age: age}, err
}

// From returns the time of the moment, zero for none.
func (m Moment) From(now time.Time) time.Time {
	if m.Age == 0 {
		return m.Time
	}
	return now.Add(-m.Age)
}
