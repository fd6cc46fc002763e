package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/manpage"
	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// shells are those for which there is a script, in the order of the help.
var shells = [...]string{"bash", "zsh", "fish"}

func completionCommand() command {
	return command{
		name:    "completion",
		summary: "Print a script that completes words in a shell",
		takes:   shells[:],
		about: `Prints a script by which the shell completes commands, flags and their values:
devices, representors, choices, files, names of peers and keys, and what is in
the shares of a daemon. What cannot be found within a second, or the duration in
DMA_COPY_COMPLETION_WAIT, is not offered. A package of dma-copy has installed
the scripts already.
`,
		list: []manpage.Row{
			{Term: "bash", Text: "needs the package bash-completion. The script goes into " +
				"~/.local/share/bash-completion/completions/dma-copy, or for all users into " +
				"/usr/share/bash-completion/completions/dma-copy"},
			{Term: "zsh", Text: `needs "autoload -U compinit; compinit" in ~/.zshrc. The script goes into a file ` +
				"_dma-copy in a directory of $fpath, such as /usr/local/share/zsh/site-functions"},
			{Term: "fish", Text: "reads the script from ~/.config/fish/completions/dma-copy.fish"},
		},
		examples: `$ source <(dma-copy completion bash)
$ dma-copy completion bash > /etc/bash_completion.d/dma-copy
$ dma-copy completion zsh > /usr/local/share/zsh/site-functions/_dma-copy
$ dma-copy completion fish > ~/.config/fish/completions/dma-copy.fish
`,
		settings: new(config.General),
		complete: firstOf(shells[:]...),
		run: func(_ context.Context, streams streams, args []string, _ zerolog.Logger) error {
			return writeCompletion(streams.stdout, args)
		},
	}
}

// writeCompletion writes the script for a shell.
func writeCompletion(w io.Writer, args []string) (err error) {
	if len(args) == 0 {
		return exit.Usagef("completion: the shell is missing: give %s", phrase.Or(shells[:]))
	}
	if len(args) > 1 {
		return exit.Usagef("unexpected argument %s: dma-copy completion takes one shell", quote.Text(args[1]))
	}
	program := &cobra.Command{Use: "dma-copy"} // the scripts depend on the name only
	switch args[0] {
	case "bash":
		err = program.GenBashCompletionV2(w, true)
	case "zsh":
		err = program.GenZshCompletion(w)
	case "fish":
		err = writeFishCompletion(w, program)
	default:
		return exit.Usagef("completion %s: unknown shell: give %s", quote.Bare(args[0]), phrase.Or(shells[:]))
	}
	if err != nil {
		return fmt.Errorf("print the script: %w", err)
	}
	return nil
}

// fishChanges replace parts of the script for fish. There the names of directories are those of all files, and what a
// word in front of the completed one has in quotes, such as a(b), is run as a command.
var fishChanges = [...]struct{ from, to string }{
	{
		`        __dma_copy_debug "File extension filtering or directory filtering not supported"
        # Do full file completion instead
        return 1
`, `        set -l flag (commandline -ct | string match -r '^-[^=]*=')
        set -l word (commandline -ct | string replace -r '^-[^=]*=' '')
        set --global __dma_copy_comp_results "$flag"(__fish_complete_directories $word '')
        return 0
`,
	}, {
		`    set -l args (commandline -opc)
`, `    set -l args (commandline -opc | string replace --all --regex '[^\w~$/.,:=@+-]' '\\\\$0')
`,
	},
}

// writeFishCompletion writes cobra's script with the changes.
func writeFishCompletion(w io.Writer, program *cobra.Command) error {
	var script bytes.Buffer
	if err := program.GenFishCompletion(&script, true); err != nil {
		return err
	}
	text := script.String()
	for _, change := range fishChanges {
		if strings.Count(text, change.from) != 1 {
			return errors.New("internal error: the script for fish has changed")
		}
		text = strings.Replace(text, change.from, change.to, 1)
	}
	_, err := io.WriteString(w, text)
	return err
}
