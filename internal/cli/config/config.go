// Package config shows settings with their origin, and checks parameter files.
package config

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Settings holds the settings of config.
type Settings struct {
	option.Logging
	Output option.OutputForm
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return append(s.LogOptions(),
		option.ParameterFile(),
		option.Output(&s.Output, "Output format, in front of the arguments"),
	)
}

// The name and the arguments of config.
const (
	configName  = "config"
	configShow  = "show"
	configCheck = "check"
)

// Command returns the command config.
func Command(p *root.Program) root.Command {
	s := new(Settings)
	return root.Command{
		Name:    configName,
		Summary: "Show settings and their origin, check a file",
		Takes:   []string{"show [COMMAND] [FLAG]...", "check [FILE]"},
		Others:  true,
		About: `show prints each setting with which COMMAND would run, and whether it is from a
flag, from a file and its line, from a variable or the default; COMMAND is copy,
the default, or push, serve and so on, with flags if they are to be considered.

check reads a parameter file, by default /etc/dma-copy/config.json, and says
where it is wrong. The exit code is then 3.
`,
		Examples: `$ dma-copy config show
$ dma-copy config show serve --json /etc/dma-copy/serve.json
$ dma-copy config -o json check configs/serve.json
`,
		Settings: s,
		Complete: configArguments(p), StandsFor: shownBy(p),
		Run: func(_ context.Context, streams root.Streams, args []string, _ zerolog.Logger) error {
			return runConfig(p, streams, *s, args)
		},
	}
}

func runConfig(p *root.Program, streams root.Streams, s Settings, args []string) error {
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

func showConfig(p *root.Program, streams root.Streams, s Settings, args []string) error {
	name := root.CopyName
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	settings, err := p.SettingsOf(name)
	if err != nil {
		return err
	}
	values, err := p.SettingsWithOrigins(name, settings, streams, args)
	if err != nil {
		return err
	}
	if s.Output == option.OutputJSON {
		return printConfig(streams.Stdout, encode(struct {
			Version  int            `json:"v"` // of this form
			Settings []option.Value `json:"settings"`
		}{1, values}))
	}
	return printConfig(streams.Stdout, option.FormatValues(values))
}

func checkConfig(p *root.Program, streams root.Streams, s Settings, args []string) error {
	path := option.DefaultFile(streams.Env)
	if len(args) > 0 {
		path = args[0]
	}
	checked, err := p.Settings().CheckFile(path)
	if s.Output == option.OutputJSON {
		checked.Valid = err == nil
		if err != nil {
			checked.Error = err.Error()
		}
		text := encode(struct {
			Version int `json:"v"` // of this form
			option.CheckedFile
		}{1, checked})
		if printErr := printConfig(streams.Stdout, text); printErr != nil {
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
	return printConfig(streams.Stdout, text)
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
