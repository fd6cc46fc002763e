package copying

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// Sides is how the help speaks of a copy.
type Sides bool

const (
	twoCommands Sides = false // each side has one, and its options are about this side
	OneCommand  Sides = true
)

// help returns one of two texts.
func (s Sides) help(ofThisSide, ofTheCopy string) string {
	if s == OneCommand {
		return ofTheCopy
	}
	return ofThisSide
}

// letter returns the letter of an option where the program is no copy of DOCA's.
func (s Sides) letter(letter string) string {
	if s == OneCommand {
		return letter
	}
	return ""
}

// MostLanes is how many lanes a side may be given: each has memory of its own.
const MostLanes = 16

// filterList is the list to which --include, --exclude and --exclude-from append: their order matters.
const filterList = "filters"

// digestPrefixes returns the algorithms of a digest as it begins, such as "crc32c:".
func digestPrefixes() []string {
	prefixes := digest.Names()[1:] // none is no digest
	for i := range prefixes {
		prefixes[i] += ":"
	}
	return prefixes
}

// digestAuto stands for the digest that suits the peer.
const digestAuto = "auto"

func digestChoices() []string { return append([]string{digestAuto}, digest.Names()...) }

// durabilities returns the names of all durabilities, the weakest first.
func durabilities() (names []string) {
	for d := wire.DurabilityNone; d <= wire.DurabilityFull; d++ {
		names = append(names, d.String())
	}
	return names
}

// preservable are the choices of --preserve. Several may be given.
var preservable = []string{"owner", "xattr", "links", preserveAll}

// preserveAll stands for the others, and for the attributes that only root may set.
const preserveAll = "all"

// linkChoices are the choices of --links, in the order of the modes.
var linkChoices = []string{tree.LinksCopy: "copy", tree.LinksFollow: "follow", tree.LinksSkip: "skip"}

// parseExpected parses the digest that a file is expected to have.
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

// parseRule returns a parser of a FilterRule from a parser of its text.
func parseRule(kind FilterKind, parse func(string) (string, error)) func(string) (FilterRule, error) {
	return func(text string) (FilterRule, error) {
		text, err := parse(text)
		return FilterRule{Kind: kind, Text: text}, err
	}
}

// longestWord is the limit of --with, in bytes.
const longestWord = 200

func parseWord(text string) (string, error) {
	if text == "" || len(text) > longestWord {
		return "", fmt.Errorf("%d bytes long; give a word of 1 to %d bytes", len(text), longestWord)
	}
	return text, nil
}

// momentOption is an option whose value is an age or a time of files.
func momentOption(name string, moment *quantity.Moment, help string) option.Option {
	opt := option.Text(option.NativeFlags, name, "TIME", moment, parseMoment, help)
	opt.Default = "0"
	return opt
}

func parseMoment(text string) (quantity.Moment, error) {
	moment, err := quantity.ParseMoment(text)
	switch {
	case errors.Is(err, quantity.ErrRange):
		err = errors.New("not within 292 years; give an age such as 7d, or a date such as 2026-01-31")
	case err != nil:
		err = errors.New("not a time; give an age such as 36h or 7d, a date such as 2026-01-31, or " +
			"2026-01-31T12:00:00Z")
	}
	return moment, err
}

// defaultDigest is cheap and, unlike the stronger ones, can be computed of chunks in any order.
const defaultDigest = digest.CRC32C

// MakePathOption creates the directories above the target.
func MakePathOption(make *bool) option.Option {
	return option.Switch(option.AddedFlags, "mkpath", make, "Create missing directories above the target").
		In(option.TopicTrees)
}
