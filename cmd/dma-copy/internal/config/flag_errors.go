package config

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// jsonFlagHelp corrects the user who takes --json for the form of the output.
const jsonFlagHelp = "it reads a parameter file, as in --json FILE or -j FILE; for output as JSON write -o json"

// ExplainFlagError turns an error of the flag parser into one sentence with a next step. The command is spelled as on
// the command line, "dma-copy verify".
func ExplainFlagError(command string, flags *pflag.FlagSet, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return explainUnknownFlag(command, flags, unknown)
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return explainMissingValue(flags, bare.GetFlag())
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
	if guess == "" {
		return exit.Usagef(`unknown flag %s: "%s --help" lists the flags`, quote.Text(spelled), command)
	}
	return exit.Usagef("unknown flag %s: did you mean --%s?", quote.Text(spelled), guess)
}

func explainMissingValue(flags *pflag.FlagSet, flag *pflag.Flag) error {
	opt, _ := optionByName(everyOption(), flag.Name)
	if opt.name == "json" && flags.Lookup("output") != nil {
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
