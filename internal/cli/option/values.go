package option

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// ParseDevice parses the name of a device.
func ParseDevice(text string) (string, error) {
	if !isDeviceName(text) {
		return "", errors.New("not a device; give a PCI address such as b1:00.1, or an IB or net device name")
	}
	return text, nil
}

// ParseRepresentor parses the name of a host function or its representor.
func ParseRepresentor(text string) (string, error) {
	if !isDeviceName(text) {
		return "", errors.New("not a representor; give the PCI address of a host function such as b1:00.1, " +
			"or the VUID or net device name of its representor")
	}
	return text, nil
}

const maxDeviceName = 127 // of a VUID; PCI addresses, IB device names (63) and net device names (15) are shorter

func isDeviceName(text string) bool {
	misfit := func(r rune) bool { return r == '/' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	return text != "" && len(text) <= maxDeviceName && !strings.ContainsFunc(text, misfit)
}

// ParsePath parses the path of a file.
func ParsePath(text string) (string, error) {
	if text == "" {
		return "", errors.New("an empty name; give the path of a file")
	}
	if strings.ContainsRune(text, 0) {
		return "", errors.New("a path cannot hold a NUL byte; give the path of a file")
	}
	return text, nil
}

// ParseOneOf returns a parser that accepts exactly the given words.
func ParseOneOf[T ~string](words ...T) func(string) (T, error) {
	return func(text string) (T, error) {
		if slices.Contains(words, T(text)) {
			return T(text), nil
		}
		return "", fmt.Errorf("not one of the choices; give %s", phrase.Or(Texts(words...)))
	}
}

// ParseSwitch parses true or false.
func ParseSwitch(text string) (bool, error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, errors.New("not a boolean; give true or false")
	}
	return on, nil
}

// ParseLevel parses a log level, by number or by name.
func ParseLevel(text string) (Level, error) {
	if long, is := map[string]string{"WARN": "WARNING", "ERR": "ERROR"}[strings.ToUpper(text)]; is {
		text = long
	}
	for i, name := range LevelNames {
		level := Level(10 * (i + 1))
		if strings.EqualFold(text, name) || text == strconv.Itoa(int(level)) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("not a log level; give 10 to 70 in steps of ten, or %s", phrase.Or(LevelNames[:]))
}

// ParseLimit accepts zero, which means no limit.
func ParseLimit(text string) (time.Duration, error) {
	limit, err := ParseDuration(text)
	if err == nil && limit < 0 {
		return 0, errors.New("a duration cannot be negative; give one such as 10m, or 0 for no limit")
	}
	return limit, err
}

// ParsePositiveDuration refuses zero: every wait has a deadline.
func ParsePositiveDuration(text string) (time.Duration, error) {
	grace, err := ParseDuration(text)
	if err == nil && grace <= 0 {
		return 0, errors.New("the duration must be longer than zero; give one such as 30s")
	}
	return grace, err
}

// ParseDuration parses a duration with its unit.
func ParseDuration(text string) (time.Duration, error) {
	duration, err := quantity.ParseDuration(text)
	switch {
	case errors.Is(err, quantity.ErrRange):
		return 0, errors.New("longer than 292 years; give a duration such as 5m or 7d")
	case err != nil:
		return 0, errors.New("not a duration; give a number with its unit, such as 30s, 5m or 1d")
	}
	return duration, nil
}

// Pattern returns a function that compiles an expression for a whole text on first use: most runs need none.
func Pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^" + expression + "$") })
}

// minRate lets two of the smallest chunks arrive within a second, so that the peer sees progress.
const minRate = 16 << 10

// ParseRate parses bytes per second; 0 is no limit.
func ParseRate(text string) (int64, error) {
	rate, err := ParseSize(text)
	if err == nil && rate > 0 && rate < minRate {
		err = errors.New("too small; give at least 16KiB")
	}
	return rate, err
}

// ParseSize parses bytes with an optional unit.
func ParseSize(text string) (int64, error) {
	const give = "give whole bytes such as 1048576, 512MiB or 2G"
	size, err := quantity.ParseSize(text)
	switch {
	case errors.Is(err, quantity.ErrFraction):
		return 0, fmt.Errorf("%w; %s", err, give)
	case errors.Is(err, quantity.ErrRange):
		return 0, errors.New("too large; give a size such as 2GiB")
	case err != nil:
		return 0, errors.New("not a size; " + give)
	}
	return size, nil
}

// MaxCount is the maximum of counts without another one.
const MaxCount = 1<<31 - 1

// ParseCount returns a parser of whole numbers between two limits. It refuses signs and leading zeros, which look like
// octal or like a typing error.
func ParseCount[T int | int64 | uint32](least, most T) func(string) (T, error) {
	return func(text string) (T, error) {
		count, err := strconv.ParseInt(text, 10, 64)
		if err != nil || count < int64(least) || count > int64(most) || strconv.FormatInt(count, 10) != text {
			return 0, fmt.Errorf("give a whole number from %d to %d", least, most)
		}
		return T(count), nil
	}
}

// ParseRank returns a parser that accepts exactly the given words, and returns the index of the word.
func ParseRank[T ~uint8](words ...string) func(string) (T, error) {
	return func(text string) (T, error) {
		word, err := ParseOneOf(words...)(text)
		return T(max(0, slices.Index(words, word))), err
	}
}

// ParseList returns a parser of comma-separated values without duplicates.
func ParseList[T comparable](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) ([]T, error) {
		var values []T
		for word := range strings.SplitSeq(text, ",") {
			value, err := parse(word)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", quote.Text(word), err)
			}
			if slices.Contains(values, value) {
				return nil, fmt.Errorf("%s is given twice; leave one out", quote.Text(word))
			}
			values = append(values, value)
		}
		return values, nil
	}
}

// ParseAs returns a parser whose errors say what the text should be.
func ParseAs[T any](what string, parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		value, err := parse(text)
		if err != nil {
			err = fmt.Errorf("not %s: %w", what, err)
		}
		return value, err
	}
}

// ParseFile parses the name of a file of this machine, which is not the address of one on another.
func ParseFile(text string) (string, error) {
	if strings.HasPrefix(text, share.Scheme) {
		return "", errOtherMachine
	}
	return ParsePath(text)
}

var errOtherMachine = errors.New("a file on another machine: copy it with dma-copy push, pull or sync " +
	"(a file of this machine with such a name is written with ./ before it)")

// RefuseOtherMachines refuses arguments of a command that only knows files of this machine.
func RefuseOtherMachines(args []string) error {
	for _, arg := range args {
		if strings.HasPrefix(arg, share.Scheme) {
			return exit.Usagef("%s: %w", quote.Text(arg), errOtherMachine)
		}
	}
	return nil
}
