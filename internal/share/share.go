// Package share has the directories that a daemon offers to its peers: their names, rights and limits (Share), the form
// in which a command names what is in them (Remote), and access to their content that never leaves them (Opened). It
// must not know a peer or a protocol state.
package share

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Share is a directory that a daemon offers under a name.
type Share struct {
	Name   string // as CheckName accepts it
	Path   string // of the directory: what is there when the share is opened
	Access Access // of every key, unless the key has less

	NoOverwrite bool  // existing files are never replaced or removed
	Privileged  bool  // what peers send may have ACLs, capabilities and other attributes that grant privileges
	MaxBytes    int64 // of one copy into the share; 0 is unlimited
	MaxEntries  int64 // of one copy into the share; 0 is unlimited
}

// MaxName is the longest name of a share, or of a peer, in bytes.
const MaxName = 64

var namePattern = pattern(`^[a-z0-9_][a-z0-9._-]*$`)

// pattern returns a function that compiles an expression on first use: most runs of the program need none.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// CheckName returns an error unless text can be the name of a share: 1 to 64 bytes of a-z, 0-9, ".", "_" and "-",
// beginning with neither "." nor "-".
func CheckName(text string) error {
	switch {
	case len(text) > MaxName:
		return fmt.Errorf("%s is not a name of a share: the longest has %d characters", quote.Text(text), MaxName)
	case !namePattern().MatchString(text):
		return fmt.Errorf(`%s is not a name of a share: use a-z, 0-9, ".", "_" and "-", and begin with a letter, `+
			`digit or "_"`, quote.Text(text))
	}
	return nil
}

// Check returns an error unless the share has a valid name, a path, a right and limits that are not negative.
func (s Share) Check() error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	switch {
	case s.Path == "":
		return fmt.Errorf("share %s has no path: name a directory", s.Name)
	case strings.IndexByte(s.Path, 0) >= 0:
		return fmt.Errorf("the path of share %s contains a zero byte: name a directory", s.Name)
	case s.Access == 0 || s.Access&^ReadWrite != 0:
		return fmt.Errorf("share %s has no access: give ro, wo or rw", s.Name)
	case s.MaxBytes < 0 || s.MaxEntries < 0:
		return fmt.Errorf("share %s has a negative limit: give a number, or 0 for no limit", s.Name)
	}
	return nil
}

// Parse parses NAME=PATH[,ro|wo|rw][,nooverwrite][,privileged][,max-bytes=SIZE][,max-entries=N]. The default access is
// ro. The path cannot contain a comma.
func Parse(text string) (Share, error) {
	name, rest, found := strings.Cut(text, "=")
	if !found {
		return Share{}, fmt.Errorf("%s has no path: write NAME=PATH, such as inbox=/srv/inbox,rw", quote.Text(text))
	}
	s := Share{Name: name}
	path, options, more := strings.Cut(rest, ",")
	s.Path = path
	given := make(map[string]bool)
	for more {
		var option string
		option, options, more = strings.Cut(options, ",")
		kind, err := s.set(option)
		if err == nil && given[kind] {
			err = errors.New("it has " + kind + " twice: give it once")
		}
		if err != nil {
			return Share{}, fmt.Errorf("share %s: %w", quote.Text(name), err)
		}
		given[kind] = true
	}
	if s.Access == 0 {
		s.Access = Read
	}
	if err := s.Check(); err != nil {
		return Share{}, err
	}
	return s, nil
}

// The names of options, in the text form and in JSON.
const (
	optionAccess      = "access" // in JSON only
	optionNoOverwrite = "nooverwrite"
	optionPrivileged  = "privileged"
	optionMaxBytes    = "max-bytes"
	optionMaxEntries  = "max-entries"
)

// set sets one option of the text form and returns its name.
func (s *Share) set(text string) (kind string, err error) {
	name, value, hasValue := strings.Cut(text, "=")
	switch {
	case name == optionMaxBytes && hasValue:
		s.MaxBytes, err = parseSize(value)
		return name, err
	case name == optionMaxEntries && hasValue:
		s.MaxEntries, err = parseEntries(value)
		return name, err
	case text == optionNoOverwrite:
		s.NoOverwrite = true
		return text, nil
	case text == optionPrivileged:
		s.Privileged = true
		return text, nil
	}
	if s.Access, err = ParseAccess(text); err == nil {
		return optionAccess, nil
	}
	return "", fmt.Errorf("unknown option %s: use ro, wo, rw, nooverwrite, privileged, max-bytes=SIZE or "+
		"max-entries=N "+
		"(for a path with a comma, name a symlink to it)", quote.Text(text))
}

// String returns the form that Parse reads.
func (s Share) String() string {
	text := s.Name + "=" + s.Path + "," + s.Access.String()
	if s.NoOverwrite {
		text += "," + optionNoOverwrite
	}
	if s.Privileged {
		text += "," + optionPrivileged
	}
	if s.MaxBytes > 0 {
		text += "," + optionMaxBytes + "=" + strconv.FormatInt(s.MaxBytes, 10)
	}
	if s.MaxEntries > 0 {
		text += "," + optionMaxEntries + "=" + strconv.FormatInt(s.MaxEntries, 10)
	}
	return text
}

func parseSize(text string) (int64, error) {
	size, err := quantity.ParseSize(text)
	switch {
	case errors.Is(err, quantity.ErrFraction):
		return 0, fmt.Errorf("%s is %w: give a size such as 1048576, 512MiB or 20G", quote.Text(text), err)
	case errors.Is(err, quantity.ErrRange):
		return 0, fmt.Errorf("%s is larger than any file: give a size such as 20GiB", quote.Text(text))
	case err != nil:
		return 0, fmt.Errorf("%s is not a size: give bytes such as 1048576, 512MiB or 20G", quote.Text(text))
	}
	return size, nil
}

func parseEntries(text string) (int64, error) {
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil || count < 0 || text[0] == '+' {
		return 0, fmt.Errorf("%s is not a number of entries: give a whole number such as 100000", quote.Text(text))
	}
	return count, nil
}

// Access is what a peer may do in a share: a set of Read and Write. The zero value allows nothing.
type Access uint8

// The rights.
const (
	Read      Access = 1 << iota // list, and receive from the share
	Write                        // send to the share, and remove
	ReadWrite = Read | Write
)

// Allows reports whether all of the wanted rights are in a.
func (a Access) Allows(wanted Access) bool { return a&wanted == wanted }

// String returns the form that ParseAccess reads; "none" without any right.
func (a Access) String() string {
	switch a {
	case 0:
		return "none"
	case Read:
		return "ro"
	case Write:
		return "wo"
	case ReadWrite:
		return "rw"
	default:
		return fmt.Sprintf("access %#x", uint8(a))
	}
}

// ParseAccess parses "ro", "wo" or "rw".
func ParseAccess(text string) (Access, error) {
	for _, a := range []Access{Read, Write, ReadWrite} {
		if text == a.String() {
			return a, nil
		}
	}
	return 0, fmt.Errorf("%s is not an access: give ro (read only), wo (write only) or rw", quote.Text(text))
}
