package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// The parsers below turn the text of a value into its type, for flags, parameter files and variables alike. Their
// errors say what is wrong and what to give instead; the caller adds the origin.

// parseFile parses the name of a file of this machine, which is not the address of one on another.
func parseFile(text string) (string, error) {
	if strings.HasPrefix(text, share.Scheme) {
		return "", errOtherMachine
	}
	return option.ParsePath(text)
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

// longestMeasurement is half of what a daemon permits: a case may turn out slower than its first copies.
const longestMeasurement = 5 * time.Second

func parseMeasurement(text string) (time.Duration, error) {
	each, err := option.ParsePositiveDuration(text)
	if err == nil && each > longestMeasurement {
		return 0, fmt.Errorf("a measurement takes at most %s", longestMeasurement)
	}
	return each, err
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

// durabilities returns the names of all durabilities, the weakest first.
func durabilities() (names []string) {
	for d := wire.DurabilityNone; d <= wire.DurabilityFull; d++ {
		names = append(names, d.String())
	}
	return names
}

// preservable are the choices of --preserve, of which several may be given.
var preservable = []string{"owner", "xattr", "links"}

func (s *Copy) assignPreserved(text string) error {
	words, err := option.ParseList(option.ParseOneOf(preservable...))(text)
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
	case len(text) > service.MaxPingText:
		return "", fmt.Errorf("longer than %d bytes; give a shorter text", service.MaxPingText)
	case !utf8.ValidString(text):
		return "", errors.New("not UTF-8; give a text such as hello")
	}
	return text, nil
}

func parsePingSize(text string) (uint32, error) {
	size, err := option.ParseSize(text)
	if err == nil && size > service.MaxPingSize {
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
