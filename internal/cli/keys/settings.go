package keys

import (
	"fmt"
	"math"
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Settings holds the settings of keys. The rights of a key come from the command line alone: a file or a variable of
// another command, with options of the same names, must not change it.
type Settings struct {
	option.Logging
	Directory string // of keys; empty: the default one
	Output    option.OutputForm
	Comment   string         // for the line of this side's key; empty: user and machine
	Grant     identity.Grant // of trust, without name and key
	Overwrite bool           // replace what the name stands for
	Quiet     bool           // print nothing of what was done
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(s.LogOptions(), []option.Option{
		option.ParameterFile(),
		option.Everyday(option.Directory(option.AddedFlags, "keys", &s.Directory,
			"Directory of this side's key and of the trusted keys; default /etc/dma-copy for root, else dma-copy in "+
				"XDG_CONFIG_HOME or ~/.config")),
		option.Output(&s.Output, "new, show, list: output format"),
		option.Quiet(&s.Quiet, "new, trust, remove: print errors only"),
	}, option.FlagsOnly([]option.Option{
		option.Everyday(option.Text(option.AddedFlags, "comment", "TEXT", &s.Comment, parseComment,
			"new, show: text behind the key in its line; default USER@MACHINE")),
		option.Everyday(option.Switch(option.AddedFlags, "overwrite", &s.Overwrite,
			"trust: replace the key that has this NAME")),
		{Group: option.AddedFlags, Everyday: true, Name: "share", Value: "NAME=ro|wo|rw", JSON: option.JSONList,
			List: "share", Assign: s.assignShare,
			Help: "trust: a share that the key may use, with the most that it may do there; may be repeated. " +
				"Without: all shares as they are"},
		option.Everyday(option.Switch(option.AddedFlags, "owner", &s.Grant.Owner,
			"trust: what the key sends may keep its owner")),
		option.Everyday(option.Size(option.AddedFlags, "max-bytes", &s.Grant.MaxBytes, "0",
			"trust: limit of one copy; 0 is no limit")),
		option.Everyday(option.Count(option.AddedFlags, "max-entries", &s.Grant.MaxEntries, "0", 0, math.MaxInt64,
			"trust: limit of one copy; 0 is no limit")),
		option.Everyday(option.Rate(option.AddedFlags, "bwlimit", &s.Grant.Bandwidth, "0",
			"trust: bandwidth limit of the key in bytes per second, such as 100MiB; 0 is no limit")),
		option.Everyday(option.Count(option.AddedFlags, "max-connections", &s.Grant.Connections, "0", 0,
			option.MaxCount, "trust: connections of the key at once; 0 is the daemon's limit for every key")),
	}...))
}

// assignShare adds a share that the key may use.
func (s *Settings) assignShare(text string) error {
	name, access, err := identity.ParseShareAccess(text)
	if err != nil {
		return fmt.Errorf("not a share with an access: %w", err)
	}
	if _, twice := s.Grant.Shares[name]; twice {
		return fmt.Errorf("give share %s once, with all that the key may do there", name)
	}
	if s.Grant.Shares == nil {
		s.Grant.Shares = make(map[string]share.Access)
	}
	s.Grant.Shares[name] = access
	return nil
}

// CheckGrant returns an error if something was given that only trust uses.
func (s *Settings) CheckGrant(action string) error {
	for _, opt := range []struct {
		name  string
		given bool
	}{
		{"share", len(s.Grant.Shares) > 0}, {"owner", s.Grant.Owner}, {"max-bytes", s.Grant.MaxBytes > 0},
		{"max-entries", s.Grant.MaxEntries > 0}, {"bwlimit", s.Grant.Bandwidth > 0},
		{"max-connections", s.Grant.Connections > 0}, {"overwrite", s.Overwrite},
	} {
		if opt.given {
			return exit.Usagef("--%s is for keys trust: leave it out of keys %s", opt.name, action)
		}
	}
	return nil
}

// maxComment leaves space for the key in its line.
const maxComment = 256

func parseComment(text string) (string, error) {
	if len(text) > maxComment || quote.Printable(text) != text {
		return "", fmt.Errorf("not a comment; give up to %d bytes of printable characters", maxComment)
	}
	return text, nil
}
