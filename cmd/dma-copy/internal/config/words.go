package config

import (
	"strings"

	"github.com/spf13/pflag"
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

// splitFlag returns the known flag in an argument, and the value if that is joined to it. Of several short flags it is
// the last one: those before it take no value.
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

// WithoutSeparators removes the separators from a copy's command line. Those behind the name of a command stay: they
// end its flags, and its arguments may begin with a dash.
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
