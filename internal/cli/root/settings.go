package root

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// SettingsOf returns the settings of a command by its name.
func (p *Program) SettingsOf(name string) (option.Settings, error) {
	if name == CopyName {
		return p.Copy.Settings, nil
	}
	for _, c := range p.Commands {
		if c.Name == name {
			return c.Settings, nil
		}
	}
	known := append(Names(p.Commands), CopyName)
	if guess := phrase.Nearest(name, known); guess != "" {
		return nil, exit.Usagef("unknown command %s: did you mean %q?", quote.Text(name), guess)
	}
	slices.Sort(known)
	return nil, exit.Usagef("unknown command %s: the commands are %s", quote.Text(name), phrase.Or(known))
}

// SettingsWithOrigins returns the values with which a command would run with these flags.
func (p *Program) SettingsWithOrigins(
	name string, settings option.Settings, streams Streams, args []string,
) ([]option.Value, error) {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	option.Declare(flags, settings)
	if err := flags.Parse(p.Settings().JoinBare(args)); err != nil {
		return nil, p.Settings().ExplainFlagError("dma-copy "+name, flags, err)
	}
	return p.Settings().Origins(flags, streams.Env, settings)
}
