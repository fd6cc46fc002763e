package option

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// separator is what DOCA's guides put in front of a program's flags, where it has no meaning.
const separator = "--"

// word is a part of a command line: a flag together with its value, the separator, or an argument.
type word struct {
	typed []string    // as it was typed; two where the value of a flag is an argument of its own
	flag  *pflag.Flag // nil for what is no flag, or an unknown one
	value string      // of the flag
}

// firstWord splits off the first word like the flag parser, but does not stop at errors.
func firstWord(flags *pflag.FlagSet, args []string) word {
	flag, value, joined := splitFlag(flags, args[0])
	switch {
	case flag == nil:
		return word{typed: args[:1]}
	case joined:
		return word{args[:1], flag, value}
	case flag.NoOptDefVal != "":
		return word{args[:1], flag, flag.NoOptDefVal}
	case len(args) == 1: // the value is missing
		return word{typed: args}
	default:
		return word{args[:2], flag, args[1]}
	}
}

// splitFlag returns the known flag in an argument, and the value if that is joined to it. With several short flags it
// is the last one: those before it take no value.
func splitFlag(flags *pflag.FlagSet, arg string) (flag *pflag.Flag, value string, joined bool) {
	if long, is := strings.CutPrefix(arg, "--"); is {
		name, value, joined := strings.Cut(long, "=")
		return flags.Lookup(name), value, joined
	}
	short, is := strings.CutPrefix(arg, "-")
	for is && short != "" {
		if flag = flags.ShorthandLookup(short[:1]); flag == nil {
			return nil, "", false
		}
		short = short[1:]
		if value, joined := strings.CutPrefix(short, "="); joined && value != "" {
			return flag, value, true
		}
		if flag.NoOptDefVal == "" {
			return flag, short, short != ""
		}
	}
	return flag, "", false
}

// WithoutSeparators removes the separators from a copy's command line. They stay behind the name of a command, where
// they end its flags, and its arguments may begin with a dash.
func WithoutSeparators(flags *pflag.FlagSet, args []string) []string {
	kept := []string{} // never nil, for which cobra would use the process's own arguments
	for len(args) > 0 {
		w := firstWord(flags, args)
		if !strings.HasPrefix(w.typed[0], "-") || w.typed[0] == Stream { // an argument
			return append(kept, args...)
		}
		if w.typed[0] != separator {
			kept = append(kept, w.typed...)
		}
		args = args[len(w.typed):]
	}
	return kept
}

// SetKnownFlags sets flags from anywhere on a command line, also behind what the parser refused.
func SetKnownFlags(flags *pflag.FlagSet, args []string) {
	for len(args) > 0 {
		w := firstWord(flags, args)
		if w.flag != nil {
			_ = flags.Set(w.flag.Name, w.value) // never fails
		}
		args = args[len(w.typed):]
	}
}

// jsonFlagHelp corrects the user who takes --json for the form of the output.
const jsonFlagHelp = "it reads a parameter file, as in --json FILE or -j FILE; for output as JSON write -o json"

// ExplainFlagError turns an error of the flag parser into one sentence with a next step. The command is spelled as on
// the command line, "dma-copy verify".
func (c Commands) ExplainFlagError(command string, flags *pflag.FlagSet, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return explainUnknownFlag(command, flags, unknown)
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return c.explainMissingValue(flags, bare.GetFlag())
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return exit.Usagef("--%s %s: the flag takes no value; leave it out",
			invalid.GetFlag().Name, quote.Text(invalid.GetValue()))
	}
	if malformed, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return exit.Usagef("%s is not a flag: write --NAME VALUE or --NAME=VALUE",
			quote.Text(malformed.GetSpecifiedFlag()))
	}
	return exit.Usagef(`%w; "%s --help" lists the flags`, err, command)
}

func explainUnknownFlag(command string, flags *pflag.FlagSet, unknown *pflag.NotExistError) error {
	spelled, guess := "-"+unknown.GetSpecifiedName(), ""
	if unknown.GetSpecifiedShortnames() == "" {
		spelled, guess = "-"+spelled, phrase.Nearest(unknown.GetSpecifiedName(), flagNames(flags))
	}
	if advice := adviceOn(spelled, flags); advice != "" {
		return exit.Usagef("unknown flag %s: %s", quote.Text(spelled), advice)
	}
	if guess == "" {
		return exit.Usagef(`unknown flag %s: "%s --help" lists the flags`, quote.Text(spelled), command)
	}
	return exit.Usagef("unknown flag %s: did you mean --%s?", quote.Text(spelled), guess)
}

func (c Commands) explainMissingValue(flags *pflag.FlagSet, flag *pflag.Flag) error {
	opt, _ := ByName(c.table(), flag.Name)
	if opt.Name == "json" && flags.Lookup("output") != nil {
		return exit.Usagef("--json needs a value: %s", jsonFlagHelp)
	}
	short := ""
	if flag.Shorthand != "" {
		short = fmt.Sprintf(" or -%s %s", flag.Shorthand, opt.placeholder())
	}
	return exit.Usagef("--%s needs a value: write --%s %s%s", flag.Name, flag.Name, opt.placeholder(), short)
}

func flagNames(flags *pflag.FlagSet) []string {
	var names []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	return names
}
