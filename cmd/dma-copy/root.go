package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// execute carries out a command line and returns what went wrong, which it does not print.
func execute(
	ctx context.Context, streams streams, args []string, run func(context.Context, copySettings, zerolog.Logger) error,
) error {
	root := newRootCommand(streams, args, run)
	root.SetArgs(withoutSeparators(root.Flags(), args))
	var unprinted error // cobra's functions that print help return none
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { unprinted = writeHelpOf(cmd, streams.stdout) })
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return unprinted
}

// newRootCommand returns the program's command, with those that do something else than copy below it. Executing it
// turns the command line args into settings and hands them to run, together with the context and the logger; it acts on
// nothing itself and prints no error, but for the event that refuse writes.
func newRootCommand(
	streams streams, args []string, run func(ctx context.Context, s copySettings, log zerolog.Logger) error,
) *cobra.Command {
	root := &cobra.Command{
		Use:               "dma-copy [DOCA Flags] [Program Flags]",
		SilenceErrors:     true, // main prints the error, once
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(cmd *cobra.Command, rest []string) error {
			return refuseEarly(streams, cmd.Flags(), refuseArguments(rest))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wanted, err := cmd.Flags().GetBool("version"); err == nil && wanted {
				return writeVersion(streams.stdout, docaRuntimeVersion(libraryDirOf(cmd.Flags(), streams)))
			}
			var s copySettings
			log, err := settle(cmd.Flags(), streams, &s)
			if err == nil {
				err = s.validate()
			}
			if err != nil {
				return refuse(streams, s, err)
			}
			outliveReaders()
			return run(cmd.Context(), s, log)
		},
	}
	root.SetOut(streams.stdout)
	root.SetErr(streams.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if err = explainFlagError(cmd, err); cmd.HasParent() {
			return err
		}
		setKnownFlags(cmd.Flags(), args)
		return refuseEarly(streams, cmd.Flags(), err)
	})
	root.SetHelpCommand(newHelpCommand(root))
	root.Flags().BoolP("help", "h", false, "")
	root.Flags().BoolP("version", "v", false, "")
	declareFlags(root.Flags(), &copySettings{})
	for _, c := range commands() {
		root.AddCommand(newSubcommand(c, streams))
	}
	return root
}

// settle fills in the settings of a run and returns its logger. With an error the settings are filled in as far as they
// are good.
func settle(flags *pflag.FlagSet, streams streams, s settings) (zerolog.Logger, error) {
	notes, err := loadSettings(flags, streams, s)
	if limit := checkDescriptors(); limit != nil {
		err = limit // which may be why a parameter file could not be read
	}
	if err != nil {
		return zerolog.Nop(), err
	}
	log := newLogger(streams, s.level())
	for _, note := range notes {
		log.Warn().Msg(note)
	}
	return log, nil
}

// refuse returns the error that keeps a copy from starting. With -o json it also writes it as an event.
func refuse(streams streams, s copySettings, err error) error {
	outliveReaders()
	if s.Output == outputJSON {
		newProgram(streams, s, zerolog.Nop()).fails(err)
	}
	return err
}

// refuseEarly is refuse for an error in the command line itself, before there are settings. nil stays nil.
func refuseEarly(streams streams, flags *pflag.FlagSet, err error) error {
	if err == nil {
		return nil
	}
	var s copySettings
	_, _ = loadSettings(flags, streams, &s) // what else is wrong is not reported
	return refuse(streams, s, err)
}

func refuseArguments(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if guess := nearest(args[0], append(commandNames(), "help")); guess != "" {
		return exit.Usagef("unknown command %s: did you mean %q?", quote.Text(args[0]), guess)
	}
	return exit.Usagef("unexpected argument %s: name the file with -f FILE, and write long flags with two dashes",
		quote.Text(args[0]))
}

// whatJSONIs is for those who take --json for the form of the output.
const whatJSONIs = "it reads a parameter file, as in --json FILE or -j FILE; for output as JSON write -o json"

// explainFlagError turns what the flag parser says into one sentence with a next step.
func explainFlagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return explainUnknownFlag(cmd, unknown)
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return explainMissingValue(cmd.Flags(), bare.GetFlag())
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return exit.Usagef("--%s %s: the flag takes no value; leave it out",
			invalid.GetFlag().Name, quote.Text(invalid.GetValue()))
	}
	if malformed, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return exit.Usagef("%s is not a flag: write --NAME VALUE or --NAME=VALUE", quote.Text(malformed.GetSpecifiedFlag()))
	}
	return exit.Usagef(`%w; "%s --help" lists the flags`, err, cmd.CommandPath())
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
		return exit.Usagef(`unknown flag %s: "%s --help" lists the flags`, quote.Text(spelled), cmd.CommandPath())
	}
	return exit.Usagef("unknown flag %s: did you mean --%s?", quote.Text(spelled), guess)
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

func explainMissingValue(flags *pflag.FlagSet, flag *pflag.Flag) error {
	opt, _ := optionByName(everyOption(), flag.Name)
	if opt.name == "json" && flags.Lookup("output") != nil {
		return exit.Usagef("--json needs a value: %s", whatJSONIs)
	}
	short := ""
	if flag.Shorthand != "" {
		short = fmt.Sprintf(" or -%s %s", flag.Shorthand, opt.value)
	}
	return exit.Usagef("--%s needs a value: write --%s %s%s", flag.Name, flag.Name, opt.value, short)
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
