package main

import (
	"context"
	"slices"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/manpage"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// command is a command of the program, or a copy, which has no name and neither summary nor about.
type command struct {
	name     string
	summary  string          // its line in the list of commands
	about    string          // the first paragraphs of its help
	list     []manpage.Row   // follows them; may be nil
	notes    string          // the paragraphs behind the list; may be empty
	examples string          // command lines, each with a prompt in front
	settings option.Settings // the flags fill them in before run is called
	takes    []string        // the arguments behind its flags, one usage each; nil: none
	complete completes       // offers its arguments to a shell; nil: there is nothing to offer
	others   bool            // its arguments may be flags of other commands; its own are in front of them

	// standsFor, if not nil, returns the command line of the other command that arguments begin; nil: none.
	standsFor func(before []string) []string

	run func(ctx context.Context, streams streams, args []string, log zerolog.Logger) error

	// refused, if not nil, reports why the command does not start, with those settings that are valid. It returns the
	// error.
	refused func(streams streams, err error) error
}

// newSubcommand returns the cobra command. line is the whole command line.
func (p *program) newSubcommand(c command, streams streams, line []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   c.name,
		Short: c.summary,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || c.takes != nil {
				return nil
			}
			return p.refuseLine(c, streams, cmd.Flags(),
				exit.Usagef("unexpected argument %s: dma-copy %s takes flags only", quote.Text(args[0]), c.name))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.others && asksForHelp(args) {
				return cmd.Help()
			}
			return p.run(cmd, c, streams, args)
		},
	}
	cmd.SetFlagErrorFunc(p.refuseFlags(c, streams, line))
	cmd.Flags().BoolP("help", "h", false, helpFlag.Help)
	option.Declare(cmd.Flags(), c.settings)
	cmd.Flags().SetInterspersed(!c.others)
	return cmd
}

// asksForHelp reports whether the flags among arguments include that for help.
func asksForHelp(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--help") || slices.Contains(args, "-h")
}

// run carries out a command whose command line was parsed.
func (p *program) run(cmd *cobra.Command, c command, streams streams, args []string) error {
	log, err := p.prepare(cmd.Flags(), streams, c.settings)
	if err != nil && c.refused != nil {
		return c.refused(streams, err)
	}
	if err != nil {
		return err
	}
	return c.run(cmd.Context(), streams, args, log)
}

// refuseFlags returns the function that explains errors in the flags of a command line.
func (p *program) refuseFlags(c command, streams streams, line []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		err = p.settings().ExplainFlagError(cmd.CommandPath(), cmd.Flags(), err)
		option.SetKnownFlags(cmd.Flags(), line)
		return p.refuseLine(c, streams, cmd.Flags(), err)
	}
}

// refuseLine is refused for an error in the command line itself, before there are settings.
func (p *program) refuseLine(c command, streams streams, flags *pflag.FlagSet, err error) error {
	if c.refused == nil {
		return err
	}
	_, _ = p.settings().Load(flags, streams.env, c.settings) // what else is wrong is not reported
	return c.refused(streams, err)
}

// ended reports the error of a command, if there is one, and returns it.
func ended(to interface{ Fail(error) }, log zerolog.Logger, err error) error {
	if err != nil {
		to.Fail(err)
	}
	output.LogReworded(log, err)
	return err
}

func names(commands []command) []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}
