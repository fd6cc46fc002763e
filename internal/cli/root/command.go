package root

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Command is a command of the program, or a copy, which has no name and neither summary nor about.
type Command struct {
	Name     string
	Summary  string          // its line in the list of commands
	About    string          // the first paragraphs of its help
	List     []option.Row    // follows them; may be nil
	Notes    string          // the paragraphs behind the list; may be empty
	Examples string          // command lines, each with a prompt in front
	Settings option.Settings // the flags fill them in before run is called
	Takes    []string        // the arguments behind its flags, one usage each; nil: none
	Complete Completes       // offers its arguments to a shell; nil: there is nothing to offer
	Others   bool            // its arguments may be flags of other commands; its own are in front of them

	// Greeting, if not nil, returns the text for a command line without arguments, by the settings; empty: it runs.
	Greeting func() string

	// StandsFor, if not nil, returns the command line of the other command that arguments begin; nil: none.
	StandsFor func(before []string) []string

	Run func(ctx context.Context, streams Streams, args []string, log zerolog.Logger) error

	// Refused, if not nil, reports why the command does not start, with those settings that are valid. It returns the
	// error.
	Refused func(streams Streams, err error) error
}

// NewSubcommand returns the cobra command. line is the whole command line.
func (p *Program) NewSubcommand(c Command, streams Streams, line []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   c.Name,
		Short: c.Summary,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || c.Takes != nil {
				return nil
			}
			return p.refuseLine(c, streams, cmd.Flags(),
				exit.Usagef("unexpected argument %s: dma-copy %s takes flags only", quote.Text(args[0]), c.Name))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.Others && asksForHelp(cmd.Flags(), args) {
				return cmd.Help()
			}
			err := p.run(cmd, c, streams, args)
			if notes := option.Eaten(cmd.Flags(), line); exit.Code(err) == exit.Usage && notes != nil {
				return fmt.Errorf("%w (%s)", err, strings.Join(notes, "; "))
			}
			return err
		},
	}
	cmd.SetFlagErrorFunc(p.refuseFlags(c, streams, line))
	declareHelp(cmd.Flags())
	option.Declare(cmd.Flags(), c.Settings)
	cmd.Flags().SetInterspersed(!c.Others)
	return cmd
}

// shortHelp is the name of the flag that is given as -h alone.
const shortHelp = "h"

// declareHelp adds --help, which cobra knows, and -h, which also asks for less of it.
func declareHelp(flags *pflag.FlagSet) {
	flags.Bool("help", false, helpFlag.Help)
	flags.BoolFuncP(shortHelp, shortHelp, helpFlag.Help, func(string) error { return flags.Set("help", "true") })
	flags.Lookup(shortHelp).Hidden = true
}

// asksForHelp reports whether the flags among arguments include the flags for help, and sets that in the flags.
func asksForHelp(flags *pflag.FlagSet, args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	long, short := slices.Contains(args, "--help"), slices.Contains(args, "-h")
	if short && !long {
		_ = flags.Set(shortHelp, "true") // never fails
	}
	return long || short
}

// run carries out a command whose command line was parsed.
func (p *Program) run(cmd *cobra.Command, c Command, streams Streams, args []string) error {
	log, err := p.prepare(cmd.Flags(), streams, c.Settings)
	if err != nil && c.Refused != nil {
		return c.Refused(streams, err)
	}
	if err != nil {
		return err
	}
	if c.Greeting != nil && cmd.Flags().NFlag() == 0 {
		if text := c.Greeting(); text != "" {
			_, err := io.WriteString(streams.Stdout, text)
			return err
		}
	}
	return c.Run(cmd.Context(), streams, args, log)
}

// refuseFlags returns the function that explains errors in the flags of a command line.
func (p *Program) refuseFlags(c Command, streams Streams, line []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		err = p.Settings().ExplainFlagError(cmd.CommandPath(), cmd.Flags(), err)
		option.SetKnownFlags(cmd.Flags(), line)
		return p.refuseLine(c, streams, cmd.Flags(), err)
	}
}

// refuseLine is refused for an error in the command line itself, before there are settings.
func (p *Program) refuseLine(c Command, streams Streams, flags *pflag.FlagSet, err error) error {
	if c.Refused == nil {
		return err
	}
	_, _ = p.Settings().Load(flags, streams.Env, c.Settings) // what else is wrong is not reported
	return c.Refused(streams, err)
}

// Names returns the names of commands.
func Names(commands []Command) []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return names
}
