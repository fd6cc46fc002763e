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
