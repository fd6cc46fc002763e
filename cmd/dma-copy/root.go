package main

import (
	"context"
	"slices"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// execute carries out a command line. It returns its error and does not print it.
func execute(
	ctx context.Context, streams streams, args []string, run func(context.Context, config.Copy, zerolog.Logger) error,
) (err error) {
	defer job.Recover(&err)
	list := commands()
	if len(args) > 0 && args[0] == manName { // which is not in the help
		list = append(list, manCommand())
	}
	before, completes := wordToComplete(args)
	if shown, flagsOnly := shownBy(before, list); shown != nil {
		before, list = shown, flagsOnly
	}
	root := newRootCommand(streams, args, list, run)
	if completes {
		before = option.WithoutSeparators(root.Flags(), before)
		root.SetArgs(slices.Concat(args[:1], before, args[len(args)-1:]))
		prepareCompletion(root, list, streams, before)
	}
	var unprinted error // cobra's functions that print help return none
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		unprinted = writeCommandHelp(streams.stdout, cmd.Name(), list)
	})
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return unprinted
}

// newRootCommand returns the command of the program, which copies, with all others below it. Executing it turns the
// command line args into settings and passes them to run. It prints no error, except for the event of refusedCopy.
func newRootCommand(
	streams streams, args []string, list []command,
	run func(ctx context.Context, s config.Copy, log zerolog.Logger) error,
) *cobra.Command {
	var s config.Copy
	self := command{settings: &s, refused: refusedCopy(&s)}
	root := &cobra.Command{
		Use:               "dma-copy [DOCA Flags] [Program Flags]",
		SilenceErrors:     true, // main prints the error, once
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(cmd *cobra.Command, rest []string) error {
			if err := refuseArguments(rest); err != nil {
				return self.refuseLine(streams, cmd.Flags(), err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wanted, err := cmd.Flags().GetBool("version"); err == nil && wanted {
				about := versionsOf(option.TextOf("doca-libdir", cmd.Flags(), streams.env))
				form := option.OutputForm(option.TextOf("output", cmd.Flags(), streams.env))
				return about.print(streams.stdout, form)
			}
			log, err := prepare(cmd.Flags(), streams, &s)
			if err == nil {
				err = s.Validate()
			}
			if err != nil {
				return self.refused(streams, err)
			}
			ignoreSIGPIPE()
			return run(cmd.Context(), s, log)
		},
	}
	root.SetOut(streams.stdout)
	root.SetErr(streams.stderr)
	root.SetFlagErrorFunc(self.refuseFlags(streams, args))
	root.SetHelpCommand(newHelpCommand(root, list))
	root.Flags().BoolP("help", "h", false, helpFlag.Help)
	root.Flags().BoolP("version", "v", false, versionFlag.Help)
	option.Declare(root.Flags(), &config.Copy{})
	for _, c := range list {
		root.AddCommand(newSubcommand(c, streams, args))
	}
	root.SetArgs(option.WithoutSeparators(root.Flags(), args))
	return root
}

// commands are those below the root, in the order of the help.
func commands() []command {
	return []command{
		benchCommand(), bundleCommand(), completionCommand(), configCommand(), devicesCommand(), doctorCommand(),
		keysCommand(),
		localCommand(), lsCommand(), mkdirCommand(), pingCommand(), pullCommand(), pushCommand(), rmCommand(),
		serveCommand(), statusCommand(), syncCommand(), verifyCommand(), versionCommand(),
	}
}

func refuseArguments(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if guess := phrase.Nearest(args[0], append(names(commands()), "help")); guess != "" {
		return exit.Usagef("unknown command %s: did you mean %q?", quote.Text(args[0]), guess)
	}
	return exit.Usagef("unexpected argument %s: name the file with -f FILE, and write long flags with two dashes",
		quote.Text(args[0]))
}

// refusedCopy returns the command.refused of a command that copies. With -o json it writes the error as an event.
func refusedCopy(s *config.Copy) func(streams, error) error {
	return func(streams streams, err error) error {
		ignoreSIGPIPE()
		if s.Output == option.OutputJSON {
			output.New(streams.stdout, streams.stderr, streams.screen, *s, zerolog.Nop()).Fail(err)
		}
		return err
	}
}
