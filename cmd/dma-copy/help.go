package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

const helpIntroduction = `Usage: dma-copy [DOCA Flags] [Program Flags]
       dma-copy COMMAND [Flags]

Copies a file or a directory between a host and its BlueField DPU. Run it on
both sides; the side that has it sends it, the other side creates it.
`

const (
	helpOfHelp    = "Print this help"
	helpOfVersion = "Print the version of dma-copy and of DOCA"

	helpHelpFlag     = "  -h, --help                     " + helpOfHelp + "\n"
	helpGeneralFlags = "\nDOCA Flags:\n" + helpHelpFlag + "  -v, --version                  " + helpOfVersion + "\n"
)

// flagGroups are the flags of a copy below those of every DOCA program.
var flagGroups = [...]struct {
	title string
	group config.FlagGroup
}{
	{"Program Flags", config.ProgramFlags},
	{"Added Flags (not in DOCA's program)", config.AddedFlags},
	{"Added Flags that need dma-copy on both sides", config.NativeFlags},
}

const helpCommands = `
Commands (see "dma-copy COMMAND --help"):
`

// copyExamples are the examples of a copy, as those of a command.
const copyExamples = `host$ dma-copy -p b1:00.1 -f image.bin
dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f /var/tmp/image.bin
host$ dma-copy -p b1:00.1 -f photos --exclude '*.tmp'
dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f /var/tmp/photos
host$ tar c photos | dma-copy -p b1:00.1 -f -
dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f photos.tar
`

const helpValues = `Sizes and rates: bytes, or as in 256KiB, 1.5G or 64kB; K is 1024, kB is 1000.
Durations: as in 500ms, 1h30m, 2d12h or 1w.

Precedence: flag, --json file, environment, /etc/dma-copy/config.json, default;
the first one wins.
`

const helpEnvironment = `  DMA_COPY_<FLAG>                Any flag but help and version, in capitals with
                                 _ for -, as in DMA_COPY_PCI_ADDR=b1:00.1 or
                                 DMA_COPY_QUIET=true; empty counts as not set.
                                 A flag that may be repeated: one value per line
  DMA_COPY_CONFIG                Another file with defaults, in the shape of the
                                 --json file, than /etc/dma-copy/config.json
  DMA_COPY_SOFT_DIR              Runtime directory of software devices; only its
                                 owner may write to it
  DMA_COPY_SOFT_SIDE             host, dpu or all: which side's devices exist
  DMA_COPY_SOFT_LIMITS           Limits of the software device, NAME=VALUE,...;
                                 softdoca/docs/SOFTDEVICE.md has them, and more
                                 variables
  NO_COLOR                       Log without colours if not empty; the log is
                                 JSON lines where stderr is no terminal, unless
                                 --log-format says otherwise
`

const helpSignals = `  SIGUSR1   prints on stderr how far it is and what it waits for, and goes on
`

const helpExitCodes = `  0         done; verified and durable as requested
  1         any other failure
  3         usage or configuration
  4         source: on neither side, different on both, unreadable, neither a
            regular file nor a directory
  5         destination: exists, no space, no permission
  6         device, driver or capability missing
  7         peer absent, lost or timed out; outcome unknown
  8         refused: key not trusted, right missing, not authenticated
  9         digest mismatch
  10        source changed or vanished during the copy
  11        protocol, version or peer misbehaviour
  12        some of several failed (sources, peers, entries, verify, bench)
  13        hardware not available (--require-hw)
  14        stopped by a limit, such as --timeout
  129       SIGHUP, unless it was ignored at the start (nohup); as SIGTERM
  130, 143  SIGINT, SIGTERM: stopped, resumable; a second one kills
  141       SIGPIPE: a command's output was closed; a copy continues instead
`

const helpCommandClosing = `
Every flag may also be in a --json file or the environment, see dma-copy --help;
exit codes are listed there.
`

// newHelpCommand returns `help` and `help COMMAND`, which print what --help prints.
func newHelpCommand(root *cobra.Command, commands []command) *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Print the help of a command",
		Hidden: true,
		ValidArgsFunction: func(
			_ *cobra.Command, before []string, word string,
		) ([]cobra.Completion, cobra.ShellCompDirective) {
			return firstOf(names(commands)...)(completer{}, before, word)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return root.Help()
			}
			about, _, err := root.Find(args)
			if err != nil || about == root {
				return refuseTopic(args[0], names(commands))
			}
			return about.Help()
		},
	}
}

func refuseTopic(topic string, known []string) error {
	if guess := phrase.Nearest(topic, known); guess != "" {
		return exit.Usagef("no help topic %s: did you mean %q?", quote.Text(topic), guess)
	}
	return exit.Usagef("no help topic %s: the commands are %s", quote.Text(topic), phrase.Or(known))
}

// writeCommandHelp prints the help of the command of this name, or else that of the program.
func writeCommandHelp(w io.Writer, name string, commands []command) error {
	text := programHelp(&config.Copy{}, commands)
	for _, c := range commands {
		if c.name == name {
			text = commandHelp(c)
		}
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("print the help: %w", err)
	}
	return nil
}

// programHelp returns the help of the program, in the layout of DOCA programs.
func programHelp(s config.Settings, commands []command) string {
	var text strings.Builder
	text.WriteString(helpIntroduction)
	text.WriteString(helpGeneralFlags)
	text.WriteString(config.FlagUsage(s, config.DOCAFlags))
	for _, g := range flagGroups {
		text.WriteString("\n" + g.title + ":\n" + config.FlagUsage(s, g.group))
	}
	text.WriteString(helpCommands)
	for _, c := range commands {
		fmt.Fprintf(&text, "  %-*s%s\n", config.HelpColumn-len("  "), c.name, c.summary)
	}
	text.WriteString("\nExamples:\n" + indented(copyExamples) + "\n" + helpValues)
	text.WriteString("\nEnvironment:\n" + helpEnvironment + "\nSignals:\n" + helpSignals)
	text.WriteString("\nExit codes:\n" + helpExitCodes)
	return text.String()
}

func commandHelp(c command) string {
	var text strings.Builder
	text.WriteString(commandUsage(c) + "\n" + c.about)
	text.WriteString("\nFlags:\n" + helpHelpFlag)
	text.WriteString(config.FlagUsage(c.settings))
	text.WriteString("\nExamples:\n" + indented(c.examples))
	text.WriteString(helpCommandClosing)
	return text.String()
}

// indented returns lines with two spaces in front.
func indented(lines string) string {
	var text strings.Builder
	for line := range strings.Lines(lines) {
		text.WriteString("  " + line)
	}
	return text.String()
}

// commandUsage returns a line for each form of the command.
func commandUsage(c command) string {
	start := "dma-copy " + c.name + " [Flags]"
	if len(c.takes) == 0 {
		return "Usage: " + start + "\n"
	}
	between := "\n       " + start + " "
	return "Usage: " + start + " " + strings.Join(c.takes, between) + "\n"
}
