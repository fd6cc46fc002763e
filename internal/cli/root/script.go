package root

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// WriteScript writes the script by which a shell completes: bash, zsh or else fish.
func WriteScript(w io.Writer, shell string) error {
	program := &cobra.Command{Use: "dma-copy"} // the scripts depend on the name only
	switch shell {
	case "bash":
		return program.GenBashCompletionV2(w, true)
	case "zsh":
		return program.GenZshCompletion(w)
	}
	return writeFishCompletion(w, program)
}

// fishChanges replace parts of the script for fish. There the names of all files are offered for directories, and text
// that a word in front of the completed one has in quotes, such as a(b), is run as a command.
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
