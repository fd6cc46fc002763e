package config

import (
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Keys holds the settings of keys. What a key is granted comes from the command line alone: a file or a variable of
// another command, with options of the same names, must not change it.
type Keys struct {
	Logging
	Directory   string // of keys; empty: the default one
	Output      OutputForm
	Comment     string // for the line of this side's key; empty: user and machine
	Shares      []ShareAccess
	Owner       bool
	MaxBytes    int64 // of one copy; 0 is no limit
	MaxEntries  int64 // of one copy; 0 is no limit
	Bandwidth   int64 // bytes per second; 0 is no limit
	Connections int   // at once; 0 is as many as the daemon allows for each key
	Overwrite   bool  // replace what the name stands for
	Quiet       bool  // print nothing of what was done
}

// ShareAccess is one --share of keys trust.
type ShareAccess struct {
	Name   string
	Access share.Access
}

// options implements Settings.
func (s *Keys) options() []option {
	return slices.Concat(s.logOptions(), []option{
		jsonOption(),
		keysOption(&s.Directory, "Directory of this side's key and of the trusted "+
			"keys; default /etc/dma-copy for root, else dma-copy in XDG_CONFIG_HOME or ~/.config"),
		outputOption(&s.Output, "new, show, list: output format"),
		quietOption(&s.Quiet, "new, trust, remove: print errors only"),
	}, s.flagOnlyOptions())
}

func (s *Keys) flagOnlyOptions() []option {
	table := append([]option{
		{name: "comment", value: "TEXT", json: jsonText,
			assign: into(&s.Comment, parseComment),
			help:   "new, show: text behind the key in its line; default USER@MACHINE"},
		switchOption(AddedFlags, "overwrite", &s.Overwrite, "trust: replace the key that has this NAME"),
	}, s.grantOptions()...)
	for i := range table {
		table[i].group, table[i].flagOnly = AddedFlags, true
	}
	return table
}

func (s *Keys) grantOptions() []option {
	return []option{
		{name: "share", value: "NAME=ro|wo|rw", json: jsonList, list: "share",
			assign: appending(&s.Shares, parseShareAccess),
			help: "trust: a share that the key may use, with the most that it may do there; may be repeated. " +
				"Without: all shares as they are"},
		switchOption(AddedFlags, "owner", &s.Owner, "trust: what the key sends may keep its owner"),
		maxBytesOption(&s.MaxBytes, "trust: limit of one copy; 0 is no limit"),
		maxEntriesOption(&s.MaxEntries, "trust: limit of one copy; 0 is no limit"),
		bandwidthOption(&s.Bandwidth, "trust: bandwidth limit of the key in bytes per "+
			"second, such as 100MiB; 0 is no limit"),
		countOption(AddedFlags, "max-connections", &s.Connections, "0", 0, maxCount,
			"trust: connections of the key at once; 0 is the daemon's limit for every key"),
	}
}

func parseShareAccess(text string) (ShareAccess, error) {
	name, access, err := identity.ParseShareAccess(text)
	if err != nil {
		return ShareAccess{}, fmt.Errorf("not a share with an access: %w", err)
	}
	return ShareAccess{name, access}, nil
}

// maxComment leaves space for the key in its line.
const maxComment = 256

func parseComment(text string) (string, error) {
	if len(text) > maxComment || quote.Printable(text) != text {
		return "", fmt.Errorf("not a comment; give up to %d bytes of printable characters", maxComment)
	}
	return text, nil
}

// Grants returns the shares that the key may use, nil for all; or an error if one of them is there twice.
func (s *Keys) Grants() (map[string]share.Access, error) {
	var shares map[string]share.Access
	for _, given := range s.Shares {
		if _, twice := shares[given.Name]; twice {
			return nil, exit.Usagef("--share %s: give it once, with all that the key may do there", given.Name)
		}
		if shares == nil {
			shares = make(map[string]share.Access)
		}
		shares[given.Name] = given.Access
	}
	return shares, nil
}

// CheckGrant returns an error if something was given that only trust uses.
func (s *Keys) CheckGrant(action string) error {
	for _, opt := range []struct {
		name  string
		given bool
	}{
		{"share", len(s.Shares) > 0}, {"owner", s.Owner}, {"max-bytes", s.MaxBytes > 0},
		{"max-entries", s.MaxEntries > 0}, {"bwlimit", s.Bandwidth > 0}, {"max-connections", s.Connections > 0},
		{"overwrite", s.Overwrite},
	} {
		if opt.given {
			return exit.Usagef("--%s is for keys trust: leave it out of keys %s", opt.name, action)
		}
	}
	return nil
}
