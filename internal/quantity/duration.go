package quantity

import (
	"math"
	"strings"
	"time"
)

// hoursOf returns the hours of the units that time.ParseDuration does not know, 0 for all others.
func hoursOf(unit string) time.Duration {
	switch unit {
	case "d":
		return 24
	case "w":
		return 7 * 24
	default:
		return 0
	}
}

// ParseDuration is time.ParseDuration with days (d, of 24 hours) and weeks (w): 1d, 1.5d, 2d12h, -1w. It returns
// ErrSyntax or ErrRange, the latter for more than 292 years.
func ParseDuration(text string) (time.Duration, error) {
	if !strings.ContainsAny(text, "dw") {
		return parsePlain(text)
	}
	sign, rest := time.Duration(1), text
	if rest[0] == '-' || rest[0] == '+' {
		if rest[0] == '-' {
			sign = -1
		}
		rest = rest[1:]
	}
	var total time.Duration
	for rest != "" {
		part := rest[:lengthOfPart(rest)]
		rest = rest[len(part):]
		duration, err := parsePart(part)
		if err != nil {
			return 0, err
		}
		if total > math.MaxInt64-duration {
			return 0, ErrRange
		}
		total += duration
	}
	return sign * total, nil
}

// parsePlain parses a duration without days and weeks.
func parsePlain(text string) (time.Duration, error) {
	duration, err := time.ParseDuration(text)
	if err != nil && isOverflow(text) {
		return 0, ErrRange
	}
	if err != nil {
		return 0, ErrSyntax
	}
	return duration, nil
}

// isOverflow reports whether a text that time.ParseDuration refuses is a duration but for its range: its units are
// accepted with a number of one digit.
func isOverflow(text string) bool {
	var short strings.Builder
	for i, c := range []byte(text) {
		isDigit := c >= '0' && c <= '9'
		if !isDigit || i == 0 || text[i-1] < '0' || text[i-1] > '9' {
			short.WriteByte(c)
		}
	}
	_, err := time.ParseDuration(short.String())
	return err == nil
}

// lengthOfPart returns the length of the number and its unit at the start of a text.
func lengthOfPart(text string) int {
	number, rest := splitNumber(text)
	unit := strings.IndexAny(rest, "0123456789.")
	if unit < 0 {
		return len(text)
	}
	return len(number) + unit
}

// parsePart parses one number with its unit and without a sign.
func parsePart(part string) (time.Duration, error) {
	number, unit := splitNumber(part)
	if number == "" || unit == "" {
		return 0, ErrSyntax
	}
	hours := hoursOf(unit)
	if hours == 0 {
		return parsePlain(part)
	}
	duration, err := parsePlain(number + "h")
	if err == nil && duration > math.MaxInt64/hours {
		return 0, ErrRange
	}
	return hours * duration, err
}
