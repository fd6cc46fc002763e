// Package quantity parses sizes and durations as people write them, 1.5GiB and 2d12h, and writes sizes, counts and
// ages for people.
//
// It has the only parser of each, for flags, variables, parameter files and shares. Its errors are for errors.Is; the
// caller says what to give instead. All functions are safe for concurrent use.
package quantity

import (
	"errors"
	"math/big"
	"strings"
)

// The reasons why a text is refused.
var (
	ErrSyntax   = errors.New("not a quantity")
	ErrFraction = errors.New("not a whole number of bytes")
	ErrRange    = errors.New("too large")
)

// maxText is more bytes than any size has, and keeps the exact arithmetic below short.
const maxText = 64

// ParseSize parses bytes with an optional unit of any case, of 0 to 2^63-1 bytes: K, KiB, M, MiB, G, GiB, T and TiB are
// powers of 1024, kB, MB, GB and TB powers of 1000, as in GNU's tools. The number may have a fraction if the result is
// a whole number of bytes. It returns ErrSyntax, ErrFraction or ErrRange.
func ParseSize(text string) (int64, error) {
	if len(text) > maxText {
		return 0, tooLong(text)
	}
	number, unit := splitNumber(text)
	scale, known := scales[strings.ToLower(unit)]
	if !known || !isDecimal(number) {
		return 0, ErrSyntax
	}
	bytes, _ := new(big.Rat).SetString(number)
	bytes.Mul(bytes, new(big.Rat).SetInt64(scale))
	switch {
	case !bytes.IsInt():
		return 0, ErrFraction
	case !bytes.Num().IsInt64():
		return 0, ErrRange
	default:
		return bytes.Num().Int64(), nil
	}
}

// tooLong returns why a text longer than maxText is refused.
func tooLong(text string) error {
	if strings.Trim(text, "0123456789") == "" && text[0] != '0' {
		return ErrRange
	}
	return ErrSyntax
}

// splitNumber splits a text behind its leading digits and points.
func splitNumber(text string) (number, rest string) {
	rest = strings.TrimLeft(text, "0123456789.")
	return text[:len(text)-len(rest)], rest
}

// isDecimal reports whether a text of digits and points is a number. Leading zeros look like octal or like a typing
// error.
func isDecimal(number string) bool {
	whole, fraction, pointed := strings.Cut(number, ".")
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	return !pointed || fraction != "" && !strings.Contains(fraction, ".")
}

// scales are the bytes of each unit in lower case.
var scales = map[string]int64{
	"": 1, "b": 1,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}
