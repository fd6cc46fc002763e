package main

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// program is the program: what it does without the name of a command, which is a copy, and its commands.
type program struct {
	copy     command
	commands []command // in the order of the help

	// version prints the versions for --version.
	version func(w io.Writer, libraryDir string, form option.OutputForm) error
}

// settings returns the settings of all commands.
func (p *program) settings() option.Commands {
	all := option.Commands{p.copy.settings}
	for _, c := range p.commands {
		all = append(all, c.settings)
	}
	return all
}

// execute carries out a command line. It returns its error and does not print it.
func (p *program) execute(ctx context.Context, streams streams, args []string) (err error) {
	defer job.Recover(&err)
	list := p.commands
	if len(args) > 0 && args[0] == manName { // which is not in the help
		list = append(slices.Clip(list), p.manCommand())
	}
	before, completes := wordToComplete(args)
	if shown, flagsOnly := p.stoodFor(before); shown != nil {
		before, list = shown, flagsOnly
	}
	root := p.newRootCommand(streams, args, list)
	if completes {
		before = option.WithoutSeparators(root.Flags(), before)
		root.SetArgs(slices.Concat(args[:1], before, args[len(args)-1:]))
		p.prepareCompletion(root, list, streams, before)
	}
	var unprinted error // cobra's functions that print help return none
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		unprinted = p.writeCommandHelp(streams.stdout, cmd.Name(), list)
	})
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return unprinted
}

// copyName is how commands call a copy, which has no name as a command.
const copyName = "copy"

// stoodFor returns the words that are completed where those before are of a command that stands for another one, and
// the commands that complete them: with a copy, and without arguments.
func (p *program) stoodFor(before []string) (words []string, flagsOnly []command) {
	if len(before) == 0 {
		return nil, nil
	}
	for _, c := range p.commands {
		if c.standsFor != nil && c.name == before[0] {
			words = c.standsFor(before[1:])
		}
		c.complete = nil
		flagsOnly = append(flagsOnly, c)
	}
	return words, append(flagsOnly, command{name: copyName, settings: p.copy.settings})
}

// newRootCommand returns the command of the program, which copies, with all others below it. It prints no error, except
// for the event of command.refused.
func (p *program) newRootCommand(streams streams, args []string, list []command) *cobra.Command {
	self := p.copy
	root := &cobra.Command{
		Use:               "dma-copy [DOCA Flags] [Program Flags]",
		SilenceErrors:     true, // main prints the error, once
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(cmd *cobra.Command, rest []string) error {
			if err := p.refuseArguments(rest); err != nil {
				return p.refuseLine(self, streams, cmd.Flags(), err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wanted, err := cmd.Flags().GetBool("version"); err == nil && wanted {
				form := option.OutputForm(option.TextOf("output", cmd.Flags(), streams.env))
				return p.version(streams.stdout, option.TextOf("doca-libdir", cmd.Flags(), streams.env), form)
			}
			return p.run(cmd, self, streams, nil)
		},
	}
	root.SetOut(streams.stdout)
	root.SetErr(streams.stderr)
	root.SetFlagErrorFunc(p.refuseFlags(self, streams, args))
	root.SetHelpCommand(p.newHelpCommand(root, list))
	root.Flags().BoolP("help", "h", false, helpFlag.Help)
	root.Flags().BoolP("version", "v", false, versionFlag.Help)
	option.Declare(root.Flags(), self.settings)
	for _, c := range list {
		root.AddCommand(p.newSubcommand(c, streams, args))
	}
	root.SetArgs(option.WithoutSeparators(root.Flags(), args))
	return root
}

func (p *program) refuseArguments(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if guess := phrase.Nearest(args[0], append(names(p.commands), "help")); guess != "" {
		return exit.Usagef("unknown command %s: did you mean %q?", quote.Text(args[0]), guess)
	}
	return exit.Usagef("unexpected argument %s: name the file with -f FILE, and write long flags with two dashes",
		quote.Text(args[0]))
}
