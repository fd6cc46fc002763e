package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// execute carries out a command line and returns what went wrong, which it does not print.
func execute(
	ctx context.Context, streams streams, args []string, run func(context.Context, settings, zerolog.Logger) error,
) error {
	root := newRootCommand(streams, run)
	root.SetArgs(args)
	var unprinted error // cobra's functions that print help return none
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { unprinted = writeHelpOf(cmd, streams.stdout) })
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return unprinted
}

// newRootCommand returns the program's command, with those that do something else than copy below it. Executing it
// turns the command line into settings and hands them to run, together with the context and the logger; it acts on
// nothing itself and prints no error.
func newRootCommand(
	streams streams, run func(ctx context.Context, s settings, log zerolog.Logger) error,
) *cobra.Command {
	root := &cobra.Command{
		Use:               "dma-copy [DOCA Flags] [Program Flags]",
		SilenceErrors:     true, // main prints the error, once
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              refuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wanted, err := cmd.Flags().GetBool("version"); err == nil && wanted {
				return writeVersion(streams.stdout, docaRuntimeVersion(libraryDirOf(cmd.Flags(), streams)))
			}
			return runWithSettings(cmd, streams, options(), validated(run))
		},
	}
	root.SetOut(streams.stdout)
	root.SetErr(streams.stderr)
	root.SetFlagErrorFunc(explainFlagError)
	root.SetHelpCommand(newHelpCommand(root))
	root.Flags().BoolP("help", "h", false, "")
	root.Flags().BoolP("version", "v", false, "")
	declareFlags(root.Flags(), options())
	for _, c := range commands() {
		root.AddCommand(newSubcommand(c, streams))
	}
	return root
}

// validated runs a copy whose settings are complete and agree.
func validated(run func(context.Context, settings, zerolog.Logger) error) func(context.Context, settings, zerolog.Logger) error {
	return func(ctx context.Context, s settings, log zerolog.Logger) error {
		if err := s.validate(); err != nil {
			return err
		}
		return run(ctx, s, log)
	}
}

func runWithSettings(
	cmd *cobra.Command, streams streams, table []option, run func(context.Context, settings, zerolog.Logger) error,
) error {
	s, notes, err := loadSettings(cmd.Flags(), streams, table)
	if err != nil {
		return err
	}
	log := newLogger(streams, s.LogLevel)
	for _, note := range notes {
		log.Warn().Msg(note)
	}
	return run(cmd.Context(), s, log)
}

func refuseArguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if guess := nearest(args[0], commandNames()); guess != "" {
		return usagef("unknown command %q: did you mean %q?", args[0], guess)
	}
	return usagef("unexpected argument %q: name the file with -f FILE, and write long flags with two dashes", args[0])
}

// explainFlagError turns what the flag parser says into one sentence with a next step.
func explainFlagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return explainUnknownFlag(cmd, unknown)
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return explainMissingValue(bare.GetFlag())
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usagef("--%s %q: the flag takes no value; leave it out", invalid.GetFlag().Name, invalid.GetValue())
	}
	if malformed, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return usagef("%q is not a flag: write --NAME VALUE or --NAME=VALUE", malformed.GetSpecifiedFlag())
	}
	return usagef(`%w; "%s --help" lists the flags`, err, cmd.CommandPath())
}

func explainUnknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	flags, name := cmd.Flags(), unknown.GetSpecifiedName()
	spelled, guess := "--"+name, nearest(name, flagNames(flags))
	if unknown.GetSpecifiedShortnames() != "" {
		spelled, guess = "-"+name, nearestToLetter(name, flagNames(flags))
		if isShortName(name) {
			guess = "" // that of a flag which this command does not have
		}
	}
	if guess == "" {
		return usagef(`unknown flag %q: "%s --help" lists the flags`, spelled, cmd.CommandPath())
	}
	return usagef("unknown flag %q: did you mean --%s?", spelled, guess)
}

// isShortName tells whether any command has a flag of this one letter.
func isShortName(letter string) bool {
	return slices.ContainsFunc(everyOption(), func(opt option) bool { return opt.short == letter || opt.aliasKey == letter })
}

// nearestToLetter guesses that somebody shortened a flag that has no short name, or missed the case of one.
func nearestToLetter(letter string, names []string) string {
	for _, name := range names {
		if strings.HasPrefix(name, strings.ToLower(letter)) {
			return name
		}
	}
	return ""
}

func explainMissingValue(flag *pflag.Flag) error {
	opt, _ := optionByName(everyOption(), flag.Name)
	short := ""
	if flag.Shorthand != "" {
		short = fmt.Sprintf(" or -%s %s", flag.Shorthand, opt.value)
	}
	return usagef("--%s needs a value: write --%s %s%s", flag.Name, flag.Name, opt.value, short)
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
