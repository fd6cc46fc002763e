// Package completion prints the scripts by which shells complete command lines.
package completion

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// shells are the shells for which there is a script, in the order of the help.
var shells = [...]string{"bash", "zsh", "fish"}

// Command returns the command completion.
func Command() root.Command {
	return root.Command{
		Name:    "completion",
		Summary: "Print a script that completes words in a shell",
		Takes:   shells[:],
		About: `Prints a script by which the shell completes commands, flags and their values:
devices, representors, choices, files, names of peers and keys, and what is in
the shares of a daemon. Names that are not found within a second, or the time in
DMA_COPY_COMPLETION_WAIT, are not offered. A package of dma-copy has installed
the scripts already.
`,
		List: []option.Row{
			{Term: "bash", Text: "needs the package bash-completion. The script goes into " +
				"~/.local/share/bash-completion/completions/dma-copy, or for all users into " +
				"/usr/share/bash-completion/completions/dma-copy"},
			{Term: "zsh", Text: `needs "autoload -U compinit; compinit" in ~/.zshrc. The script goes into a file ` +
				"_dma-copy in a directory of $fpath, such as /usr/local/share/zsh/site-functions"},
			{Term: "fish", Text: "reads the script from ~/.config/fish/completions/dma-copy.fish"},
		},
		Examples: `$ source <(dma-copy completion bash)
$ dma-copy completion bash > /etc/bash_completion.d/dma-copy
$ dma-copy completion zsh > /usr/local/share/zsh/site-functions/_dma-copy
$ dma-copy completion fish > ~/.config/fish/completions/dma-copy.fish
`,
		Settings: new(option.General),
		Complete: root.FirstOf(shells[:]...),
		Run: func(_ context.Context, streams root.Streams, args []string, _ zerolog.Logger) error {
			return writeCompletion(streams.Stdout, args)
		},
	}
}

// writeCompletion writes the script for a shell.
func writeCompletion(w io.Writer, args []string) error {
	if len(args) == 0 {
		return exit.Usagef("completion: the shell is missing: give %s", phrase.Or(shells[:]))
	}
	if len(args) > 1 {
		return exit.Usagef("unexpected argument %s: dma-copy completion takes one shell", quote.Text(args[1]))
	}
	if !slices.Contains(shells[:], args[0]) {
		return exit.Usagef("completion %s: unknown shell: give %s", quote.Bare(args[0]), phrase.Or(shells[:]))
	}
	if err := root.WriteScript(w, args[0]); err != nil {
		return fmt.Errorf("print the script: %w", err)
	}
	return nil
}
