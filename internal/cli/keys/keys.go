// Package keys makes and shows this side's key, and trusts others.
package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Command returns the command keys.
func Command() root.Command {
	var s Settings
	return root.Command{
		Name:    "keys",
		Summary: "Make and show this side's key, trust others",
		Takes:   []string{"new", "show", "trust NAME KEY", "list", "remove NAME"},
		About: `A daemon and a command authenticate each other by their keys. Each side has one
key of its own, and trusts those that it has been told.
`,
		List: []option.Row{
			{Term: "new", Text: "makes the key of this side, once, and shows it"},
			{Term: "show", Text: "shows its public part: a line for keys trust on the other side, and six words that " +
				"are the same there"},
			{Term: "trust NAME KEY", Text: "trusts a key under a NAME. KEY is the line that show prints, or a file " +
				"with it, or - for stdin"},
			{Term: "list", Text: "lists the trusted keys: their words and what each may do"},
			{Term: "remove NAME", Text: "ends the trust in a key"},
		},
		Notes: `After trust, compare the words it prints with those that show prints on the
other side. A daemon reads the keys at its start and on SIGHUP.

The flags that describe the key are for the command line alone, and not read
from a --json file or the environment.

The exit code is 8 for a file or directory of keys that is damaged, or that
other users can change or, for the private key, read; 4 if it cannot be read,
and 5 if it cannot be written or exists already.
`,
		Examples: `dpu$  dma-copy keys new
host$ dma-copy keys trust dpu dpu.pub
dpu$  dma-copy keys trust host host.pub --share inbox=rw --max-bytes 20GiB
dpu$  dma-copy keys list -o json
dpu$  dma-copy keys remove host
`,
		Settings: &s,
		Complete: keyNames,
		Run: func(ctx context.Context, streams root.Streams, args []string, _ zerolog.Logger) error {
			return fileio.Interruptible(ctx, func() error { return runKeys(streams, s, args) })
		},
	}
}

// The actions of keys that take the name of a key.
const (
	keysTrust  = "trust"
	keysRemove = "remove"
)

// keysActions has the actions of keys, with the number of arguments that each takes.
var keysActions = []struct {
	name      string
	arguments int // -1: one or more
	grants    bool
	system    int // exit code where the system refuses to read or write
	run       func(streams root.Streams, s Settings, store *identity.Store, args []string) error
}{
	{"new", 0, false, exit.Target, newKey},
	{"show", 0, false, exit.Source, showKey},
	{keysTrust, -1, true, exit.Target, trustKey},
	{"list", 0, false, exit.Source, listKeys},
	{keysRemove, 1, false, exit.Target, removeKey},
}

func runKeys(streams root.Streams, s Settings, args []string) error {
	var known []string
	for _, action := range keysActions {
		known = append(known, action.name)
		if len(args) == 0 || args[0] != action.name {
			continue
		}
		if !action.grants {
			if err := s.CheckGrant(action.name); err != nil {
				return err
			}
		}
		if action.arguments >= 0 && len(args)-1 != action.arguments {
			return exit.Usagef("keys %s takes %s: see dma-copy keys --help", action.name,
				[...]string{"no argument", "the NAME of a key"}[action.arguments])
		}
		store, err := connect.OpenKeys(streams.Env.Get, s.Directory)
		if err == nil {
			err = action.run(streams, s, store, args[1:])
		}
		return connect.KeysError(err, action.system)
	}
	if len(args) == 0 {
		return exit.Usagef("keys: nothing to do: give %s", phrase.Or(known))
	}
	if guess := phrase.Nearest(args[0], known); guess != "" {
		return exit.Usagef("keys %s: did you mean keys %s?", quote.Bare(args[0]), guess)
	}
	return exit.Usagef("keys %s: unknown: give %s", quote.Bare(args[0]), phrase.Or(known))
}

func newKey(streams root.Streams, s Settings, store *identity.Store, _ []string) error {
	key, err := identity.Generate()
	if err != nil {
		return exit.Errorf(exit.Failure, "", "%w", err)
	}
	err = store.SaveKey(key)
	if errors.Is(err, identity.ErrExists) {
		return exit.Errorf(exit.Target, "keep it; or remove it, and have every other side trust the new key",
			"make a key: %w", err)
	}
	if err != nil {
		return err
	}
	if s.Quiet {
		return nil
	}
	return writeKey(streams.Stdout, s, store, key.Public())
}

func showKey(streams root.Streams, s Settings, store *identity.Store, _ []string) error {
	key, err := store.Public()
	if err != nil {
		return err
	}
	return writeKey(streams.Stdout, s, store, key)
}

// keysVersion is the version of the JSON forms. New names may be added to one.
const keysVersion = 1

// shownKey is the key of this side as JSON.
type shownKey struct {
	Version int    `json:"v"`
	Key     string `json:"key"`
	Comment string `json:"comment"`
	Words   string `json:"words"`
	File    string `json:"file"`
}

// writeKey prints a public key. As text it can be given to keys trust as it is: the words are in a comment.
func writeKey(w io.Writer, s Settings, store *identity.Store, key identity.Public) error {
	comment := cmp.Or(s.Comment, cmp.Or(connect.UserName(), fmt.Sprint(os.Geteuid()))+"@"+cmp.Or(connect.MachineName(),
		"unknown"))
	line, err := key.Line(comment)
	if err != nil {
		return exit.Usagef("--comment: %w", err)
	}
	shown := shownKey{keysVersion, key.String(), comment, key.Words(), store.KeyPath()}
	return output.Print(w, s.Output, "key", shown, fmt.Sprintf("%s\n# %s\n", line, key.Words()))
}

func trustKey(streams root.Streams, s Settings, store *identity.Store, args []string) error {
	if len(args) < 2 {
		return exit.Usagef("keys trust takes a NAME and a KEY, which is the line that dma-copy keys show prints on " +
			"the other side, a file with it, or - for stdin")
	}
	key, comment, err := readKeyLine(streams.Stdin, args[1:])
	if err != nil {
		return err
	}
	grant := s.Grant
	grant.Name, grant.Key, grant.Comment = args[0], key, comment
	if err := grant.Check(); err != nil {
		return exit.Usagef("%w", err)
	}
	err = store.Trust(grant, s.Overwrite)
	if errors.Is(err, identity.ErrExists) {
		return exit.Errorf(exit.Target, "remove that one first; --overwrite replaces only what has the same name",
			"%w", err)
	}
	if err != nil || s.Quiet {
		return err
	}
	_, err = fmt.Fprintf(streams.Stdout,
		"trusted %s: %s\nCompare these words with the output of dma-copy keys show there.\n", grant.Name, key.Words())
	return err
}

// maxKeyText is the most that is read of a file with the line of a key, in bytes.
const maxKeyText = 16 << 10

// keyGrace is how long the writer of a FIFO with the line of a key may take to begin.
const keyGrace = 30 * time.Second

// readKeyLine returns the key of the arguments behind the name, which the shell may have split at blanks.
func readKeyLine(stdin io.Reader, args []string) (identity.Public, string, error) {
	text := strings.Join(args, " ")
	if !strings.HasPrefix(text, identity.LinePrefix) {
		if len(args) > 1 {
			return identity.Public{}, "", exit.Usagef("unexpected argument %s: give the line of a key, which begins "+
				"with %s, or one file", quote.Text(args[1]), identity.LinePrefix)
		}
		var err error
		if text, err = readKeyText(stdin, args[0]); err != nil {
			return identity.Public{}, "", err
		}
	}
	key, comment, err := identity.ParsePublic(text)
	if err != nil {
		err = exit.Usagef("%w", err)
	}
	return key, comment, err
}

// readKeyText returns the only line of a file, or of stdin, that is neither empty nor a comment.
func readKeyText(stdin io.Reader, name string) (string, error) {
	if name != option.Stream {
		file, err := fileio.OpenList(name, keyGrace)
		if err != nil {
			return "", exit.Errorf(exit.Source, "", "%w (the line of a key begins with %s)", err, identity.LinePrefix)
		}
		defer func() { _ = file.Close() }()
		stdin = file
	}
	text, err := io.ReadAll(io.LimitReader(stdin, maxKeyText+1))
	if err != nil {
		return "", exit.Errorf(exit.Source, "", "read the key: %w", err)
	}
	if len(text) > maxKeyText {
		return "", exit.Usagef("%s: not the line of a key: it has more than %d bytes", quote.Bare(name), maxKeyText)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		return "", exit.Usagef("%s: %d lines instead of one key", quote.Bare(name), len(lines))
	}
	return lines[0], nil
}

// listedKeys is the JSON form of keys list.
type listedKeys struct {
	Version int         `json:"v"`
	Trusted []listedKey `json:"trusted"`
	Refused []string    `json:"refused"` // why a file is not trusted, one each
}

// listedKey is a trusted key as JSON. A limit that is left out is unlimited.
type listedKey struct {
	Name        string                  `json:"name"`
	Key         string                  `json:"key"`
	Comment     string                  `json:"comment"`
	Words       string                  `json:"words"`
	AllShares   bool                    `json:"all_shares"`
	Shares      map[string]share.Access `json:"shares,omitempty"`
	Owner       bool                    `json:"owner"`
	MaxBytes    int64                   `json:"max_bytes,omitempty"`
	MaxEntries  int64                   `json:"max_entries,omitempty"`
	Bandwidth   int64                   `json:"bwlimit,omitempty"`
	Connections int                     `json:"max_connections,omitempty"`
}

func listKeys(streams root.Streams, s Settings, store *identity.Store, _ []string) error {
	trusted, err := store.Load()
	if err != nil {
		return err
	}
	all, refused := trusted.All(), []string{}
	for _, reason := range trusted.Refused() {
		refused = append(refused, reason.Error())
	}
	err = output.Print(streams.Stdout, s.Output, "keys", listOf(all, refused), textOf(all))
	if err != nil || len(refused) == 0 {
		return err
	}
	return exit.Errorf(exit.Refused, "", "not trusted: %s", strings.Join(refused, "; "))
}

func textOf(all []identity.Grant) string {
	var text strings.Builder
	for _, g := range all {
		comment := ""
		if g.Comment != "" {
			comment = " (" + g.Comment + ")"
		}
		fmt.Fprintf(&text, "%s%s\n  words   %s\n  key     %s\n  may     %s\n",
			g.Name, comment, g.Key.Words(), g.Key, strings.Join(rightsOf(g), ", "))
	}
	return text.String()
}

// rightsOf returns what a key may do, in the words of the flags.
func rightsOf(g identity.Grant) []string {
	var rights []string
	if g.Shares == nil {
		rights = append(rights, "all shares as they are")
	}
	for _, name := range slices.Sorted(maps.Keys(g.Shares)) {
		rights = append(rights, fmt.Sprintf("%s=%s", name, g.Shares[name]))
	}
	if g.Owner {
		rights = append(rights, "owner")
	}
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"max-bytes", g.MaxBytes}, {"max-entries", g.MaxEntries}, {"bwlimit", g.Bandwidth},
		{"max-connections", int64(g.Connections)},
	} {
		if limit.value > 0 {
			rights = append(rights, fmt.Sprintf("%s %d", limit.name, limit.value))
		}
	}
	return rights
}

func listOf(all []identity.Grant, refused []string) listedKeys {
	listed := listedKeys{Version: keysVersion, Trusted: []listedKey{}, Refused: refused}
	for _, g := range all {
		listed.Trusted = append(listed.Trusted, listedKey{
			Name: g.Name, Key: g.Key.String(), Comment: g.Comment, Words: g.Key.Words(), AllShares: g.Shares == nil,
			Shares: g.Shares, Owner: g.Owner, MaxBytes: g.MaxBytes, MaxEntries: g.MaxEntries,
			Bandwidth: g.Bandwidth, Connections: g.Connections,
		})
	}
	return listed
}

func removeKey(streams root.Streams, s Settings, store *identity.Store, args []string) error {
	if err := identity.CheckName(args[0]); err != nil {
		return exit.Usagef("%w", err)
	}
	if err := store.Remove(args[0]); err != nil || s.Quiet {
		return err
	}
	_, err := fmt.Fprintf(streams.Stdout, "removed %s\n", args[0])
	return err
}

// keyNames completes the argument of keys.
func keyNames(c root.Completer, before []string, word string) ([]string, root.Directive) {
	if len(before) == 0 {
		var actions []string
		for _, action := range keysActions {
			actions = append(actions, action.name)
		}
		return root.Offer(actions, word)
	}
	overwrites := c.Flags.Changed("overwrite")
	switch {
	case before[0] == keysTrust && len(before) > 1:
		return nil, root.Files // one with the line of a key
	case len(before) == 1 && (before[0] == keysRemove || before[0] == keysTrust && overwrites):
		return completeTrusted(c, word), root.OnlyThese
	}
	return nil, root.OnlyThese
}

// completeTrusted returns the names of the trusted keys with this beginning.
func completeTrusted(c root.Completer, word string) (offered []string) {
	store, err := connect.OpenKeys(c.Streams.Env.Get, contact.ListSettings(c).Keys)
	if err != nil {
		return nil
	}
	known, err := store.Load()
	if err != nil {
		return nil
	}
	for _, grant := range known.All() {
		if strings.HasPrefix(grant.Name, word) {
			offered = append(offered, root.Candidate(grant.Name, cmp.Or(grant.Comment, grant.Key.Words())))
		}
	}
	return offered
}
