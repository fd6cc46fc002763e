package identity

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Grant is a trusted key with what it may do. Limits apply to the key, on top of the limits of the share and the
// daemon.
type Grant struct {
	Name    string // unique, as share.CheckName accepts it
	Key     Public
	Comment string // of the line of the key; may be empty

	// Shares has the only shares that the key may use, each with the most access; nil: all shares as they are.
	Shares map[string]share.Access

	Owner       bool  // what the key sends may have the owner of its source
	MaxBytes    int64 // of one copy; 0: unlimited
	MaxEntries  int64 // of one copy; 0: unlimited
	Bandwidth   int64 // bytes per second of all its copies together; 0: unlimited
	Connections int   // at the same time; 0: as many as the daemon allows for each key
}

// Access returns what the key may do in a share that has a given access of its own: what both allow.
func (g Grant) Access(name string, own share.Access) share.Access {
	if g.Shares == nil {
		return own
	}
	return own & g.Shares[name]
}

// Check returns an error unless the grant is one that a file can have: with a valid name, key and comment, no empty set
// of shares, valid rights, and limits that are not negative.
func (g Grant) Check() error {
	if err := CheckName(g.Name); err != nil {
		return err
	}
	if _, err := g.Key.Line(g.Comment); err != nil {
		return err
	}
	if g.Shares != nil && len(g.Shares) == 0 {
		return errors.New("the set of shares is empty: name a share, or allow all")
	}
	for name, access := range g.Shares {
		if err := share.CheckName(name); err != nil {
			return err
		}
		if access == 0 || access&^share.ReadWrite != 0 {
			return fmt.Errorf("share %s has no access: give ro, wo or rw", name)
		}
	}
	if g.MaxBytes < 0 || g.MaxEntries < 0 || g.Bandwidth < 0 || g.Connections < 0 {
		return errors.New("a limit is negative")
	}
	return nil
}

// CheckName returns an error unless text can be the name of a key, which is also the name of a peer.
func CheckName(name string) error {
	if share.CheckName(name) == nil {
		return nil
	}
	return fmt.Errorf(`%s is not a name of a key: use up to %d of a-z, 0-9, ".", "_" and "-", and begin with a `+
		`letter, digit or "_"`, quote.Text(name), share.MaxName)
}

// The words at the beginnings of the lines of a grant's file. Every file has a key, and shares of one of two kinds at
// its end, so that a file that lost its end allows nothing or fewer shares, and never more.
const (
	wordKey         = "key"
	wordAllShares   = "all-shares"
	wordShare       = "share"
	wordOwner       = "owner"
	wordMaxBytes    = "max-bytes"
	wordMaxEntries  = "max-entries"
	wordBandwidth   = "bandwidth"
	wordConnections = "connections"
)

const (
	maxGrantFile = 128 << 10 // bytes of a grant's file
	maxShares    = 1000      // of one grant
)

// text returns the content of the grant's file.
func (g Grant) text() ([]byte, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	line, err := g.Key.Line(g.Comment)
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, "# %s\n%s %s\n", g.Key.Words(), wordKey, line)
	if g.Owner {
		b = fmt.Appendf(b, "%s\n", wordOwner)
	}
	for _, limit := range g.limits() {
		if *limit.value > 0 {
			b = fmt.Appendf(b, "%s %d\n", limit.word, *limit.value)
		}
	}
	if g.Connections > 0 {
		b = fmt.Appendf(b, "%s %d\n", wordConnections, g.Connections)
	}
	if g.Shares == nil {
		b = fmt.Appendf(b, "%s\n", wordAllShares)
	}
	for _, name := range slices.Sorted(maps.Keys(g.Shares)) {
		b = fmt.Appendf(b, "%s %s=%s\n", wordShare, name, g.Shares[name])
	}
	if len(b) > maxGrantFile || len(g.Shares) > maxShares {
		return nil, fmt.Errorf("too many shares: a key has at most %d", maxShares)
	}
	return b, nil
}

type grantLimit struct {
	word  string
	value *int64
}

func (g *Grant) limits() []grantLimit {
	return []grantLimit{
		{wordMaxBytes, &g.MaxBytes}, {wordMaxEntries, &g.MaxEntries}, {wordBandwidth, &g.Bandwidth},
	}
}

// parseGrant reads the content of the file of a grant. An unknown line is an error, so that no limit that is
// misspelled is left out.
func parseGrant(name string, text []byte) (Grant, error) {
	p := grantParser{grant: Grant{Name: name}, seen: make(map[string]bool)}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if err := p.line(string(line)); err != nil {
			return Grant{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	switch {
	case !p.seen[wordKey]:
		return Grant{}, fmt.Errorf("no line begins with %q", wordKey)
	case p.seen[wordAllShares] == p.seen[wordShare]:
		return Grant{}, fmt.Errorf("give either %q or one or more lines of %q", wordAllShares, wordShare)
	}
	return p.grant, p.grant.Check()
}

type grantParser struct {
	grant Grant
	seen  map[string]bool // words of lines
}

func (p *grantParser) line(line string) error {
	if !strings.HasSuffix(line, "\n") {
		return errors.New("the last line has no line break: the file is not complete")
	}
	line = strings.Trim(line, " \t\r\n")
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	word, value, _ := strings.Cut(line, " ")
	switch {
	case word == wordShare:
	case p.seen[word]:
		return fmt.Errorf("%s is there twice", quote.Text(word))
	case p.seen[wordShare] || p.seen[wordAllShares]:
		return fmt.Errorf("%s comes after the shares: put it before them", quote.Text(word))
	}
	p.seen[word] = true
	return p.set(word, strings.Trim(value, " \t"))
}

func (p *grantParser) set(word, value string) (err error) {
	switch word {
	case wordKey:
		p.grant.Key, p.grant.Comment, err = ParsePublic(value)
		return err
	case wordShare:
		return p.share(value)
	case wordAllShares, wordOwner:
		p.grant.Owner = p.grant.Owner || word == wordOwner
		if value != "" {
			return fmt.Errorf("%q has no value", word)
		}
		return nil
	case wordConnections:
		count, err := parseLimit(value, 31)
		p.grant.Connections = int(count)
		return err
	}
	for _, limit := range p.grant.limits() {
		if limit.word == word {
			*limit.value, err = parseLimit(value, 63)
			return err
		}
	}
	return fmt.Errorf("unknown word %s", quote.Text(word))
}

func (p *grantParser) share(value string) error {
	name, access, err := ParseShareAccess(value)
	if err != nil {
		return err
	}
	if _, is := p.grant.Shares[name]; is {
		return fmt.Errorf("share %s is there twice", name)
	}
	if p.grant.Shares == nil {
		p.grant.Shares = make(map[string]share.Access)
	}
	if len(p.grant.Shares) == maxShares {
		return fmt.Errorf("more than %d shares", maxShares)
	}
	p.grant.Shares[name] = access
	return nil
}

// ParseShareAccess parses NAME=ro, NAME=wo or NAME=rw.
func ParseShareAccess(text string) (name string, access share.Access, err error) {
	name, right, is := strings.Cut(text, "=")
	if !is {
		return "", 0, fmt.Errorf("%s has no access: write NAME=ro, NAME=wo or NAME=rw", quote.Text(text))
	}
	if err := share.CheckName(name); err != nil {
		return "", 0, err
	}
	access, err = share.ParseAccess(right)
	return name, access, err
}

// parseLimit parses a number from 1 to the largest of some bits. 0 is refused: it must not become "unlimited".
func parseLimit(text string, bits int) (int64, error) {
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%s is not a number from 1 to %d", quote.Text(text), uint64(1)<<bits-1)
	}
	return int64(n), nil
}
