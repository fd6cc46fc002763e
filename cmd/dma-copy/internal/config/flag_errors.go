package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	name := unknown.GetSpecifiedName()
	spelled, guess := "--"+name, phrase.Nearest(name, flagNames(flags))
	if unknown.GetSpecifiedShortnames() != "" {
		spelled, guess = "-"+name, nearestToLetter(name, flags)
		if isShortName(name) {
			guess = "" // the letter is a flag of another command
		}
	}
	if guess == "" {
		return exit.Usagef(`unknown flag %s: "%s --help" lists the flags`, quote.Text(spelled), command)
	}
	return exit.Usagef("unknown flag %s: did you mean --%s?", quote.Text(spelled), guess)
}

// isShortName reports whether any command has this one-letter flag.
func isShortName(letter string) bool {
	return slices.ContainsFunc(everyOption(),
		func(opt option) bool { return opt.short == letter || opt.aliasKey == letter })
}

// nearestToLetter returns the flag that has the letter in the other case, or else begins with it: the user abbreviated
// it.
func nearestToLetter(letter string, flags *pflag.FlagSet) string {
	lower := strings.ToLower(letter)
	if len(lower) == 1 {
		if flag := flags.ShorthandLookup(lower); flag != nil {
			return flag.Name
		}
	}
	for _, name := range flagNames(flags) {
		if strings.HasPrefix(name, lower) {
			return name
		}
	}
	return ""
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
