package root

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

// Directive tells the shell what to do with candidates, and whether to offer something else.
type Directive = cobra.ShellCompDirective

// The directives to the shell that are used in several places.
const (
	OnlyThese   = cobra.ShellCompDirectiveNoFileComp            // offer nothing but the candidates
	MoreFollows = OnlyThese | cobra.ShellCompDirectiveNoSpace   // the word may go on behind a candidate
	inThisOrder = OnlyThese | cobra.ShellCompDirectiveKeepOrder // do not sort the candidates
	Files       = cobra.ShellCompDirectiveDefault               // offer names of files
	directories = cobra.ShellCompDirectiveFilterDirs            // offer names of directories
)

// defaultGrace is how long a user waits for candidates that are looked up on a device or in a share, unless
// option.CompletionWaitVariable says otherwise.
const defaultGrace = time.Second

// Candidate returns a candidate with its description.
func Candidate(word, about string) string { return cobra.CompletionWithDesc(word, about) }

// Completer finds the candidates for the last word of a command line. It prints nothing, and answers a failure with no
// candidates.
type Completer struct {
	program *Program
	Streams Streams
	Flags   *pflag.FlagSet // of the command, as far as they were given
}

// Completes is a function that returns the candidates for an argument of a command, which may be empty so far, behind
// other arguments.
type Completes func(c Completer, before []string, word string) ([]string, Directive)

// wordToComplete returns the words in front of that which a shell asks to be completed, and reports whether it does.
func wordToComplete(args []string) (before []string, asked bool) {
	if len(args) < 2 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return nil, false
	}
	return args[1 : len(args)-1], true
}

// prepareCompletion has the command that the words before the completed one select offer values for its flags, and its
// arguments.
func (p *Program) prepareCompletion(root *cobra.Command, list []Command, streams Streams, before []string) {
	selected, _, err := root.Find(before)
	if err != nil {
		selected = root
	}
	on := Command{Settings: p.Copy.Settings}
	if i := slices.IndexFunc(list, func(c Command) bool { return c.Name == selected.Name() }); i >= 0 {
		on = list[i]
	}
	streams.Stderr, streams.Screen = io.Discard, nil // the user sees nothing but the candidates
	c := Completer{p, streams, selected.Flags()}
	selected.ValidArgsFunction = func(
		_ *cobra.Command, before []string, word string,
	) ([]string, Directive) {
		if on.Complete == nil {
			return nil, OnlyThese
		}
		return on.Complete(c, before, word)
	}
	c.offerValues(selected, on.Settings)
}

// offerValues lets cobra offer the values of the flags, describe each flag in a few words, and leave out flags that
// conflict with those given.
func (c Completer) offerValues(cmd *cobra.Command, s option.Settings) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		flag.Usage = option.InBrief(flag.Usage)
		err := cmd.RegisterFlagCompletionFunc(flag.Name,
			func(_ *cobra.Command, _ []string, word string) ([]string, Directive) {
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

// value returns the candidates for the value of an option.
func (c Completer) value(v option.Values, word string) ([]string, Directive) {
	switch v.Kind {
	case option.WordValues:
		return offerWords(v, word)
	case option.FileValues:
		return nil, Files
	case option.DirectoryValues:
		return nil, directories
	case option.FoundValues:
		return Within(c.Grace(), func() []string { return v.Find(c.Load, word) }), OnlyThese
	default:
		return nil, OnlyThese
	}
}

// offerWords returns the words with this beginning, or of a list those that it does not have yet.
func offerWords(v option.Values, word string) ([]string, Directive) {
	given := ""
	if v.List {
		given = word[:strings.LastIndexByte(word, ',')+1]
	}
	used := strings.Split(given, ",")
	if given != "" {
		used = append(used, "auto", "all", "none") // which stand alone
	}
	var offered []string
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

// Offer returns the words of a list with this beginning.
func Offer(words []string, word string) ([]string, Directive) {
	return offerWords(option.Values{Words: words}, word)
}

// Within returns what find returns, or nothing if that takes longer than the limit. find then goes on until the process
// ends, which is at once.
func Within(limit time.Duration, find func() []string) []string {
	found := make(chan []string, 1)
	go func() { found <- find() }()
	select {
	case list := <-found:
		return list
	case <-time.After(limit):
		return nil
	}
}

// Load fills in settings by the flags that were given, the files and the environment. Their errors are not
// reported.
func (c Completer) Load(s option.Settings) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	option.Declare(flags, s)
	c.Flags.Visit(func(given *pflag.Flag) {
		if own := flags.Lookup(given.Name); own != nil {
			_ = flags.Set(own.Name, given.Value.String()) // a text is accepted
		}
	})
	_, _ = c.program.Settings().Load(flags, c.Streams.Env, s)
}

// Grace returns how long to wait for what is looked up.
func (c Completer) Grace() time.Duration {
	text, _ := c.Streams.Env.Variable(option.CompletionWaitVariable)
	if limit, err := quantity.ParseDuration(text); err == nil && limit > 0 {
		return limit
	}
	return defaultGrace
}

// FirstOf completes the first argument of a command with words, and has no candidates for the others.
func FirstOf(words ...string) Completes {
	return func(_ Completer, before []string, word string) ([]string, Directive) {
		if len(before) > 0 {
			return nil, OnlyThese
		}
		return Offer(words, word)
	}
}

// AnyFiles completes arguments with the names of files.
func AnyFiles(Completer, []string, string) ([]string, Directive) {
	return nil, Files
}
