package main

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/quantity"
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

// defaultPatience is how long a user waits for candidates that are looked up on a device or in a share, unless
// config.CompletionWaitVariable says otherwise.
const defaultPatience = time.Second

// completer finds the candidates for the last word of a command line. It prints nothing, and answers a failure with no
// candidates.
type completer struct {
	program *program
	streams streams
	flags   *pflag.FlagSet // of the command, as far as they were given
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
func (p *program) prepareCompletion(root *cobra.Command, list []command, streams streams, before []string) {
	selected, _, err := root.Find(before)
	if err != nil {
		selected = root
	}
	on := command{settings: p.copy.settings}
	if i := slices.IndexFunc(list, func(c command) bool { return c.name == selected.Name() }); i >= 0 {
		on = list[i]
	}
	streams.stderr, streams.screen = io.Discard, nil // the user sees nothing but the candidates
	c := completer{p, streams, selected.Flags()}
	selected.ValidArgsFunction = func(
		_ *cobra.Command, before []string, word string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		if on.complete == nil {
			return nil, onlyThese
		}
		return on.complete(c, before, word)
	}
	c.offerValues(selected, on.settings)
}

// offerValues lets cobra offer the values of the flags, describe each flag in a few words, and leave out flags that
// conflict with those given.
func (c completer) offerValues(cmd *cobra.Command, s option.Settings) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		flag.Usage = inBrief(flag.Usage)
		err := cmd.RegisterFlagCompletionFunc(flag.Name,
			func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return c.value(option.ValuesOf(s, flag.Name), word)
			})
		if err != nil {
			panic("internal error: " + err.Error())
		}
	})
	for _, set := range option.Exclusive(s) {
		cmd.MarkFlagsMutuallyExclusive(set...)
	}
}

// inBrief returns the first clause of a help.
func inBrief(help string) string {
	for _, end := range []string{"; ", ". "} {
		help, _, _ = strings.Cut(help, end)
	}
	return help
}

// value returns the candidates for the value of an option.
func (c completer) value(v option.Values, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch v.Kind {
	case option.WordValues:
		return offerWords(v, word)
	case option.FileValues:
		return nil, files
	case option.DirectoryValues:
		return nil, directories
	case option.FoundValues:
		return within(c.patience(), func() []cobra.Completion { return v.Find(c.load, word) }), onlyThese
	default:
		return nil, onlyThese
	}
}

// offerWords returns the words with this beginning, or of a list those that it does not have yet.
func offerWords(v option.Values, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
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
	return offerWords(option.Values{Words: words}, word)
}

// within returns what find returns, or nothing if that takes longer than the limit. find then goes on until the process
// ends, which is at once.
func within(limit time.Duration, find func() []cobra.Completion) []cobra.Completion {
	found := make(chan []cobra.Completion, 1)
	go func() { found <- find() }()
	select {
	case list := <-found:
		return list
	case <-time.After(limit):
		return nil
	}
}

// load fills in settings by the flags that were given, the files and the environment. What is wrong with them is not
// reported.
func (c completer) load(s option.Settings) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	option.Declare(flags, s)
	c.flags.Visit(func(given *pflag.Flag) {
		if own := flags.Lookup(given.Name); own != nil {
			_ = flags.Set(own.Name, given.Value.String()) // a text is accepted
		}
	})
	_, _ = c.program.settings().Load(flags, c.streams.env, s)
}

// patience returns how long to wait for what is looked up.
func (c completer) patience() time.Duration {
	text, _ := c.streams.env.Variable(option.CompletionWaitVariable)
	if limit, err := quantity.ParseDuration(text); err == nil && limit > 0 {
		return limit
	}
	return defaultPatience
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
