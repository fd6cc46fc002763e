package copying

import (
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// StreamUses names, by descriptor, the argument that stands for a stream in place of a file; empty: none does.
type StreamUses [len(root.StreamNames)]string

// OneStream returns the uses of an argument, which may be empty, that stands for the input or the output.
func OneStream(argument string, input bool) (uses StreamUses) {
	fd := 1
	if input {
		fd = 0
	}
	uses[fd] = argument
	return uses
}

// CheckStreams refuses settings that need a stream which is closed.
func CheckStreams(c root.ClosedStreams, s Settings, uses StreamUses) error {
	for _, use := range []struct {
		argument string
		fd       int
		given    bool
	}{
		{uses[0], 0, uses[0] != ""}, {uses[1], 1, uses[1] != ""}, {uses[2], 2, uses[2] != ""},
		{"--files-from -", 0, s.FilesFrom == option.Stream}, {"-o json", 1, s.Output == option.OutputJSON},
		{"--dry-run", 1, s.DryRun},
	} {
		if use.given && c[use.fd] {
			return exit.Usagef("%s uses %s, and it is closed: connect it, for example to /dev/null", use.argument,
				root.StreamNames[use.fd])
		}
	}
	return nil
}
