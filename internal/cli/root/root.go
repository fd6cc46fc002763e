// Package root is what all commands share: the command tree, help and manual, completion in a shell, signals, logging
// and the standard streams. It knows no command: the program is a list of them.
package root

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Program is the program: what it does without the name of a command, which is a copy, and its commands.
type Program struct {
	Copy     Command
	Commands []Command // in the order of the help
	Hidden   []Command // that other programs start: in neither the help nor the manual

	// Version prints the versions for --version.
	Version func(w io.Writer, libraryDir string, form option.OutputForm) error
}

// Settings returns the settings of all commands.
func (p *Program) Settings() option.Commands {
	all := option.Commands{p.Copy.Settings}
	for _, c := range p.Commands {
		all = append(all, c.Settings)
	}
	return all
}

// Execute carries out a command line. It returns its error and does not print it.
func (p *Program) Execute(ctx context.Context, streams Streams, args []string) (err error) {
	defer job.Recover(&err)
	args = p.Settings().JoinBare(args)
	list := p.Commands
	if len(args) > 0 && slices.Contains(Names(p.Hidden), args[0]) {
		list = slices.Concat(list, p.Hidden)
	}
	before, completes := wordToComplete(args)
	if shown, flagsOnly := p.stoodFor(before); shown != nil {
		before, list = shown, flagsOnly
	}
	root := p.NewRootCommand(streams, args, list)
	if completes {
		before = option.WithoutSeparators(root.Flags(), before)
		root.SetArgs(slices.Concat(args[:1], before, args[len(args)-1:]))
		p.prepareCompletion(root, list, streams, before)
	}
	var unprinted error // cobra's functions that print help return none
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		short := cmd.Flags().Changed(shortHelp)
		unprinted = p.writeCommandHelp(streams.Stdout, cmd.Name(), list, short)
	})
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return unprinted
}

// CopyName is how commands call a copy, which has no name as a command.
const CopyName = "copy"

// stoodFor returns the words that are completed where those before are of a command that stands for another one, and
// the commands that complete them: with a copy, and without arguments.
func (p *Program) stoodFor(before []string) (words []string, flagsOnly []Command) {
	if len(before) == 0 {
		return nil, nil
	}
	for _, c := range p.Commands {
		if c.StandsFor != nil && c.Name == before[0] {
			words = c.StandsFor(before[1:])
		}
		c.Complete = nil
		flagsOnly = append(flagsOnly, c)
	}
	return words, append(flagsOnly, Command{Name: CopyName, Settings: p.Copy.Settings})
}

// NewRootCommand returns the command of the program, which copies, with all others below it. It prints no error, except
// for the event of command.refused.
func (p *Program) NewRootCommand(streams Streams, args []string, list []Command) *cobra.Command {
	self := p.Copy
	root := &cobra.Command{
		Use:               "dma-copy [Flags]",
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
				form := option.OutputForm(option.TextOf("output", cmd.Flags(), streams.Env))
				return p.Version(streams.Stdout, option.TextOf("doca-libdir", cmd.Flags(), streams.Env), form)
			}
			return p.run(cmd, self, streams, nil)
		},
	}
	root.SetOut(streams.Stdout)
	root.SetErr(streams.Stderr)
	root.SetFlagErrorFunc(p.refuseFlags(self, streams, args))
	root.SetHelpCommand(p.newHelpCommand(root, list))
	declareHelp(root.Flags())
	root.Flags().BoolP("version", "v", false, versionFlag.Help)
	option.Declare(root.Flags(), self.Settings)
	for _, c := range list {
		root.AddCommand(p.NewSubcommand(c, streams, args))
	}
	root.SetArgs(option.WithoutSeparators(root.Flags(), args))
	return root
}

func (p *Program) refuseArguments(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if err := refuseForeign(args); err != nil {
		return err
	}
	if guess := phrase.Nearest(args[0], append(Names(p.Commands), "help")); guess != "" {
		return exit.Usagef("unknown command %s: did you mean %q?", quote.Text(args[0]), guess)
	}
	return exit.Usagef("unexpected argument %s: name the file with -f FILE, and write long flags with two dashes",
		quote.Text(args[0]))
}
