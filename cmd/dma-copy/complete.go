package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
)

// A shell that completes a command line runs the program with cobra's hidden command and the words so far.

// The directives to the shell that are used in several places.
const (
	onlyThese   = cobra.ShellCompDirectiveNoFileComp            // offer nothing but the candidates
	moreFollows = onlyThese | cobra.ShellCompDirectiveNoSpace   // the word may go on behind a candidate
	inThisOrder = onlyThese | cobra.ShellCompDirectiveKeepOrder // do not sort the candidates
	files       = cobra.ShellCompDirectiveDefault               // offer names of files
	directories = cobra.ShellCompDirectiveFilterDirs            // offer names of directories
)

// completer finds the candidates for the last word of a command line. It prints nothing, and answers a failure with no
// candidates.
type completer struct {
	env   config.Environment
	flags *pflag.FlagSet // of the command, as far as they were given
}

// completes is a function that returns the candidates for an argument of a command, which may be empty so far, behind
// other arguments.
type completes func(c completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective)

// wordToComplete returns the words in front of that which a shell asks to be completed, and reports whether it does.
func wordToComplete(args []string) (before []string, asked bool) {
	if len(args) < 2 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return nil, false
	}
	return args[1 : len(args)-1], true
}

// prepareCompletion has the command that the words before the completed one select offer values for its flags, and its
// arguments.
func prepareCompletion(root *cobra.Command, list []command, streams streams, before []string) {
	selected, _, err := root.Find(before)
	if err != nil {
		selected = root
	}
	settings := config.Settings(&config.Copy{})
	complete := completes(func(completer, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, onlyThese
	})
	for _, c := range list {
		if c.name != selected.Name() || selected == root {
			continue
		}
		settings = c.settings
		if c.complete != nil {
			complete = c.complete
		}
	}
	c := completer{streams.env, selected.Flags()}
	selected.ValidArgsFunction = func(
		_ *cobra.Command, before []string, word string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		return complete(c, before, word)
	}
	c.offerValues(selected, settings)
}

// offerValues lets cobra offer the values of the flags, and describe each flag in a few words.
func (c completer) offerValues(cmd *cobra.Command, s config.Settings) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		flag.Usage = inBrief(flag.Usage)
		err := cmd.RegisterFlagCompletionFunc(flag.Name,
			func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return offerValue(config.ValuesOf(s, flag.Name), word)
			})
		if err != nil {
			panic("internal error: " + err.Error())
		}
	})
}

// inBrief returns the first clause of a help.
func inBrief(help string) string {
	for _, end := range []string{"; ", ". "} {
		help, _, _ = strings.Cut(help, end)
	}
	return help
}

// offerValue returns the candidates for the value of an option.
func offerValue(v config.Values, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch v.Kind {
	case config.WordValues:
		return offerWords(v, word)
	case config.FileValues:
		return nil, files
	case config.DirectoryValues:
		return nil, directories
	default:
		return nil, onlyThese
	}
}

// offerWords returns the words with this beginning, or of a list those that it does not have yet.
func offerWords(v config.Values, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	given := ""
	if v.List {
		given = word[:strings.LastIndexByte(word, ',')+1]
	}
	used := strings.Split(given, ",")
	if given != "" {
		used = append(used, "auto", "all", "none") // which stand alone
	}
	var offered []cobra.Completion
	then := inThisOrder
	for _, each := range v.Words {
		if strings.HasPrefix(given+each, word) && !slices.Contains(used, each) {
			offered = append(offered, given+each)
		}
		if v.List || strings.HasSuffix(each, ":") {
			then |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return offered, then
}

// offer returns the words of a list with this beginning.
func offer(words []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return offerWords(config.Values{Words: words}, word)
}

// settings returns the keys and peers of a command by the flags that were given, the files and the environment. What is
// wrong with them is not reported.
func (c completer) settings() *config.List {
	s, flags := new(config.List), pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Declare(flags, s)
	c.flags.Visit(func(given *pflag.Flag) {
		if own := flags.Lookup(given.Name); own != nil {
			_ = flags.Set(own.Name, given.Value.String()) // a text is accepted
		}
	})
	_, _ = config.Load(flags, c.env, s)
	return s
}

// firstOf completes the first argument of a command with words, and has no candidates for the others.
func firstOf(words ...string) completes {
	return func(_ completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(before) > 0 {
			return nil, onlyThese
		}
		return offer(words, word)
	}
}

// anyFiles completes arguments with the names of files.
func anyFiles(completer, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, files
}

// inShares completes arguments of which all are in shares.
func inShares(c completer, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.peers(word, ":"), moreFollows
}

// inShareOrHere completes arguments that are in a share or on this side. A shell cannot add names of files to
// candidates, so those of peers need a beginning.
func inShareOrHere(c completer, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if word != "" {
		if offered := c.peers(word, ":"); len(offered) > 0 {
			return offered, moreFollows
		}
	}
	return nil, files
}

// peerArgument completes PEER, without a share.
func peerArgument(c completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(before) > 0 {
		return nil, onlyThese
	}
	return c.peers(word, ""), onlyThese
}

// peers returns the names of the peers with this beginning, followed by what separates them from a share.
func (c completer) peers(word, separator string) (offered []cobra.Completion) {
	known := c.settings().Peers
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if strings.HasPrefix(name+separator, word) {
			about := cmp.Or(known[name].Address, known[name].Device)
			offered = append(offered, cobra.CompletionWithDesc(name+separator, about))
		}
	}
	return offered
}

// keyNames completes the argument of keys.
func keyNames(c completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(before) == 0 {
		var actions []string
		for _, action := range keysActions {
			actions = append(actions, action.name)
		}
		return offer(actions, word)
	}
	overwrites := c.flags.Changed("overwrite")
	switch {
	case before[0] == keysTrust && len(before) > 1:
		return nil, files // one with the line of a key
	case len(before) == 1 && (before[0] == keysRemove || before[0] == keysTrust && overwrites):
		return c.trusted(word), onlyThese
	}
	return nil, onlyThese
}

// trusted returns the names of the trusted keys with this beginning.
func (c completer) trusted(word string) (offered []cobra.Completion) {
	store, err := openKeys(c.env, c.settings().Keys)
	if err != nil {
		return nil
	}
	known, err := store.Load()
	if err != nil {
		return nil
	}
	for _, grant := range known.All() {
		if strings.HasPrefix(grant.Name, word) {
			offered = append(offered, cobra.CompletionWithDesc(grant.Name, cmp.Or(grant.Comment, grant.Key.Words())))
		}
	}
	return offered
}

// configArguments completes show and a command, or check and a file.
func configArguments(_ completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(before) == 0:
		return offer([]string{configShow, configCheck}, word)
	case len(before) == 1 && before[0] == configCheck:
		return nil, files
	case len(before) == 1 && before[0] == configShow:
		return offer(append(names(commands()), configCopy), word)
	}
	return nil, onlyThese
}
