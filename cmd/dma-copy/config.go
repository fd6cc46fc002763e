package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The name and the arguments of config.
const (
	configName  = "config"
	configShow  = "show"
	configCheck = "check"
	configCopy  = "copy" // a copy, which has no name as a command
)

func configCommand(p *program) command {
	s := new(config.Config)
	return command{
		name:    configName,
		summary: "Show settings and their origin, check a file",
		takes:   []string{"show [COMMAND] [FLAG]...", "check [FILE]"},
		others:  true,
		about: `show prints each setting with which COMMAND would run, and whether it is from a
flag, from a file and its line, from a variable or the default; COMMAND is copy,
the default, or push, serve and so on, with flags if they are to be considered.

check reads a parameter file, by default /etc/dma-copy/config.json, and says
where it is wrong. The exit code is then 3.
`,
		examples: `$ dma-copy config show
$ dma-copy config show serve --json /etc/dma-copy/serve.json
$ dma-copy config -o json check configs/serve.json
`,
		settings: s,
		complete: configArguments(p), standsFor: shownBy(p),
		run: func(_ context.Context, streams streams, args []string, _ zerolog.Logger) error {
			return runConfig(p, streams, *s, args)
		},
	}
}

func runConfig(p *program, streams streams, s config.Config, args []string) error {
	if len(args) > 1 && args[0] == configCheck && args[1] == "--" {
		args = slices.Delete(slices.Clone(args), 1, 2) // cobra leaves it behind the first argument
	}
	switch {
	case len(args) > 0 && args[0] == configShow:
		return showConfig(p, streams, s, args[1:])
	case len(args) > 2 && args[0] == configCheck:
		return exit.Usagef("unexpected argument %s: dma-copy config check takes one FILE or none", quote.Text(args[2]))
	case len(args) > 0 && args[0] == configCheck:
		return checkConfig(p, streams, s, args[1:])
	case len(args) == 0:
		return exit.Usagef("show or check is missing: write dma-copy config show, or dma-copy config check FILE")
	}
	return exit.Usagef("unexpected argument %s: dma-copy config takes show or check", quote.Text(args[0]))
}

// settingsOf returns the settings of a command by its name.
func (p *program) settingsOf(name string) (option.Settings, error) {
	if name == configCopy {
		return p.copy.settings, nil
	}
	for _, c := range p.commands {
		if c.name == name {
			return c.settings, nil
		}
	}
	known := append(names(p.commands), configCopy)
	if guess := phrase.Nearest(name, known); guess != "" {
		return nil, exit.Usagef("unknown command %s: did you mean %q?", quote.Text(name), guess)
	}
	slices.Sort(known)
	return nil, exit.Usagef("unknown command %s: the commands are %s", quote.Text(name), phrase.Or(known))
}

func showConfig(p *program, streams streams, s config.Config, args []string) error {
	name := configCopy
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	settings, err := p.settingsOf(name)
	if err != nil {
		return err
	}
	values, err := p.settingsWithOrigins(name, settings, streams, args)
	if err != nil {
		return err
	}
	if s.Output == option.OutputJSON {
		return printConfig(streams.stdout, encode(struct {
			Version  int            `json:"version"` // of this form
			Settings []option.Value `json:"settings"`
		}{1, values}))
	}
	return printConfig(streams.stdout, textValues(values))
}

// settingsWithOrigins returns the values with which a command would run with these flags.
func (p *program) settingsWithOrigins(
	name string, settings option.Settings, streams streams, args []string,
) ([]option.Value, error) {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	option.Declare(flags, settings)
	if err := flags.Parse(args); err != nil {
		return nil, p.settings().ExplainFlagError("dma-copy "+name, flags, err)
	}
	return p.settings().Origins(flags, streams.env, settings)
}

// textValues returns the values as columns.
func textValues(values []option.Value) string {
	nameWidth, textWidth := 0, 0
	for _, v := range values {
		nameWidth = max(nameWidth, len(v.Name))
		textWidth = max(textWidth, min(len(quote.Printable(v.Text)), 40))
	}
	var out strings.Builder
	for _, v := range values {
		fmt.Fprintf(&out, "%-*s  %-*s  %s\n", nameWidth, v.Name, textWidth, quote.Printable(v.Text), v.Origin)
	}
	return out.String()
}

func checkConfig(p *program, streams streams, s config.Config, args []string) error {
	path := option.DefaultFile(streams.env)
	if len(args) > 0 {
		path = args[0]
	}
	checked, err := p.settings().CheckFile(path, new(config.Serve))
	if s.Output == option.OutputJSON {
		checked.Valid = err == nil
		if err != nil {
			checked.Error = err.Error()
		}
		text := encode(struct {
			Version int `json:"version"` // of this form
			option.CheckedFile
		}{1, checked})
		if printErr := printConfig(streams.stdout, text); printErr != nil {
			return printErr
		}
		return err
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("ok  %s  %s, %s, %s\n", quote.Printable(path), quantity.Count(checked.Values, "value"),
		quantity.Count(checked.Shares, "share"), quantity.Count(len(checked.Peers), "peer"))
	for _, note := range checked.Notes {
		text += "    " + note + "\n"
	}
	return printConfig(streams.stdout, text)
}

// encode returns a value of this file as one line of JSON.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return string(text) + "\n"
}

func printConfig(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return nil
}
