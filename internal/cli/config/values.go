package config

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
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// The parsers below turn the text of a value into its type, for flags, parameter files and variables alike. Their
// errors say what is wrong and what to give instead; the caller adds the origin.

func parseDevice(text string) (string, error) {
	if !isDeviceName(text) {
		return "", errors.New("not a device; give a PCI address such as b1:00.1, or an IB or net device name")
	}
	return text, nil
}

func parseRepresentor(text string) (string, error) {
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

func parsePath(text string) (string, error) {
	if text == "" {
		return "", errors.New("an empty name; give the path of a file")
	}
	if strings.ContainsRune(text, 0) {
		return "", errors.New("a path cannot hold a NUL byte; give the path of a file")
	}
	return text, nil
}

// parseFile parses the name of a file of this machine, which is not the address of one on another.
func parseFile(text string) (string, error) {
	if strings.HasPrefix(text, share.Scheme) {
		return "", errOtherMachine
	}
	return parsePath(text)
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

// parseOneOf returns a parser that accepts exactly the given words.
func parseOneOf[T ~string](words ...T) func(string) (T, error) {
	return func(text string) (T, error) {
		if slices.Contains(words, T(text)) {
			return T(text), nil
		}
		return "", fmt.Errorf("not one of the choices; give %s", phrase.Or(textsOf(words...)))
	}
}

func parseSwitch(text string) (bool, error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, errors.New("not a boolean; give true or false")
	}
	return on, nil
}

func parseLevel(text string) (Level, error) {
	for i, name := range levelNames {
		level := Level(10 * (i + 1))
		if strings.EqualFold(text, name) || text == strconv.Itoa(int(level)) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("not a log level; give 10 to 70 in steps of ten, or %s", phrase.Or(levelNames[:]))
}

// parseLimit accepts zero, which means no limit.
func parseLimit(text string) (time.Duration, error) {
	limit, err := parseDuration(text)
	if err == nil && limit < 0 {
		return 0, errors.New("a duration cannot be negative; give one such as 10m, or 0 for no limit")
	}
	return limit, err
}

// parsePositiveDuration refuses zero: every wait has a deadline.
func parsePositiveDuration(text string) (time.Duration, error) {
	patience, err := parseDuration(text)
	if err == nil && patience <= 0 {
		return 0, errors.New("the duration must be longer than zero; give one such as 30s")
	}
	return patience, err
}

// longestMeasurement is half of what a daemon permits: a case may turn out slower than its first copies.
const longestMeasurement = 5 * time.Second

func parseMeasurement(text string) (time.Duration, error) {
	each, err := parsePositiveDuration(text)
	if err == nil && each > longestMeasurement {
		return 0, fmt.Errorf("a measurement takes at most %s", longestMeasurement)
	}
	return each, err
}

func parseDuration(text string) (time.Duration, error) {
	duration, err := quantity.ParseDuration(text)
	switch {
	case errors.Is(err, quantity.ErrRange):
		return 0, errors.New("longer than 292 years; give a duration such as 5m or 7d")
	case err != nil:
		return 0, errors.New("not a duration; give a number with its unit, such as 30s, 5m or 1d")
	}
	return duration, nil
}

// pattern returns a function that compiles an expression for a whole text on first use: most runs need none.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^" + expression + "$") })
}

// minRate lets two of the smallest chunks arrive within a second, so that the peer sees progress.
const minRate = 16 << 10

func parseRate(text string) (int64, error) {
	rate, err := parseSize(text)
	if err == nil && rate > 0 && rate < minRate {
		err = errors.New("too small; give at least 16KiB")
	}
	return rate, err
}

// parseSize parses bytes with an optional unit.
func parseSize(text string) (int64, error) {
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

// maxCount is the maximum of counts without another one.
const maxCount = 1<<31 - 1

// parseCount returns a parser of whole numbers between two limits. It refuses signs and leading zeros, which look like
// octal or like a typing error.
func parseCount[T int | int64 | uint32](least, most T) func(string) (T, error) {
	return func(text string) (T, error) {
		count, err := strconv.ParseInt(text, 10, 64)
		if err != nil || count < int64(least) || count > int64(most) || strconv.FormatInt(count, 10) != text {
			return 0, fmt.Errorf("give a whole number from %d to %d", least, most)
		}
		return T(count), nil
	}
}

// digestAuto stands for the digest that suits the peer.
const digestAuto = "auto"

func digestChoices() []string { return append([]string{digestAuto}, digest.Names()...) }

func (s *Copy) assignDigest(text string) error {
	if s.autoDigest = text == digestAuto; s.autoDigest {
		s.Options.Digest = defaultDigest
		return nil
	}
	a, err := digest.ParseAlgorithm(text)
	if err != nil {
		return fmt.Errorf("not a digest; give %s", phrase.Or(digestChoices()))
	}
	s.Options.Digest = a
	return nil
}

// parseRank returns a parser that accepts exactly the given words, and returns the index of the word.
func parseRank[T ~uint8](words ...string) func(string) (T, error) {
	return func(text string) (T, error) {
		word, err := parseOneOf(words...)(text)
		return T(max(0, slices.Index(words, word))), err
	}
}

// durabilities returns the names of all durabilities, the weakest first.
func durabilities() (names []string) {
	for d := negotiate.DurabilityNone; d <= negotiate.DurabilityFull; d++ {
		names = append(names, d.String())
	}
	return names
}

// preservable are the choices of --preserve, of which several may be given.
var preservable = []string{"owner", "xattr", "links"}

func (s *Copy) assignPreserved(text string) error {
	words, err := parseList(parseOneOf(preservable...))(text)
	s.Options.Owner, s.Options.Xattrs = slices.Contains(words, "owner"), slices.Contains(words, "xattr")
	s.Options.HardLinks = slices.Contains(words, "links")
	return err
}

// linkChoices are the choices of --links, in the order of the modes.
var linkChoices = []string{tree.LinksCopy: "copy", tree.LinksFollow: "follow", tree.LinksSkip: "skip"}

func parseExpected(text string) (*digest.Sum, error) {
	sum, err := digest.ParseSum(text)
	return &sum, err
}

// parseList returns a parser of comma-separated values without duplicates.
func parseList[T comparable](parse func(string) (T, error)) func(string) ([]T, error) {
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

// parseAs returns a parser whose errors say what the text should be.
func parseAs[T any](what string, parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		value, err := parse(text)
		if err != nil {
			err = fmt.Errorf("not %s: %w", what, err)
		}
		return value, err
	}
}

// maxPattern is longer than any path, in bytes.
const maxPattern = 4096

func parsePattern(text string) (string, error) {
	switch {
	case text == "" || strings.ContainsAny(text, "\x00\n"):
		return "", errors.New("not a pattern; give one line as in .gitignore, such as *.tmp or build/")
	case len(text) > maxPattern:
		return "", fmt.Errorf("longer than %d bytes; give a pattern such as *.tmp or build/", maxPattern)
	}
	if _, err := tree.NewFilter([]tree.Rule{{Pattern: text}}); err != nil {
		return "", fmt.Errorf("not a pattern: %w", errors.Unwrap(err))
	}
	return text, nil
}

// parseRule returns a parser of a FilterRule from that of its text.
func parseRule(kind FilterKind, parse func(string) (string, error)) func(string) (FilterRule, error) {
	return func(text string) (FilterRule, error) {
		text, err := parse(text)
		return FilterRule{Kind: kind, Text: text}, err
	}
}

func parseText(text string) (string, error) {
	switch {
	case len(text) > negotiate.MaxPingText:
		return "", fmt.Errorf("longer than %d bytes; give a shorter text", negotiate.MaxPingText)
	case !utf8.ValidString(text):
		return "", errors.New("not UTF-8; give a text such as hello")
	}
	return text, nil
}

func parsePingSize(text string) (uint32, error) {
	size, err := parseSize(text)
	if err == nil && size > negotiate.MaxPingSize {
		err = errors.New("too large; give at most 4MiB")
	}
	return uint32(size), err
}

// longestWord is the limit of --with, in bytes.
const longestWord = 200

func parseWord(text string) (string, error) {
	if text == "" || len(text) > longestWord {
		return "", fmt.Errorf("%d bytes long; give a word of 1 to %d bytes", len(text), longestWord)
	}
	return text, nil
}
