package root

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Introduction is the usage of the program, and behind an empty line what it does.
const Introduction = `Usage: dma-copy [Flags]
       dma-copy COMMAND [Flags]

Copies a file or a directory between a host and its BlueField DPU. Run it on
both sides; the side that has it sends it, the other side creates it.
`

// The flags that are not options.
var (
	helpFlag    = option.Described{Names: []string{"-h", "--help"}, Help: "Print this help; -h is shorter"}
	versionFlag = option.Described{
		Names: []string{"-v", "--version"}, Help: "Print the version of dma-copy and of DOCA",
	}
)

// ValueSyntax says how values are written, and which of several origins has precedence.
const ValueSyntax = `Sizes and rates: bytes, or as in 256KiB, 1.5G or 64kB; K is 1024, kB is 1000.
Durations: as in 500ms, 1h30m, 2d12h or 1w.

Precedence: flag, --json file, environment, /etc/dma-copy/config.json, default;
the first one wins.
`

// ParameterFileExample sets defaults, a daemon's options and a peer.
const ParameterFileExample = `{
    // for all commands
    "doca_general_flags": {"log-level": "INFO"},
    "doca_program_flags": {
        "pci-addr": "b1:00.1",
        "exclude": ["*.tmp", "*.swp"],
    },
    // for dma-copy serve
    "serve": {
        "share": ["inbox=/srv/inbox,rw", "images=/srv/images"],
    },
    "peers": {
        "dpu": {"device": "b1:00.1", "key": "dpu"},
        "lab": {"address": "lab.example", "key": "lab"},
    },
}
`

// Environment returns the variables of the help.
func Environment() []option.Row {
	rows := []option.Row{{Term: "DMA_COPY_<FLAG>", Text: "Any flag but help and version, in capitals with _ for -, " +
		"as in DMA_COPY_PCI_ADDR=b1:00.1 or DMA_COPY_QUIET=true; empty counts as not set. A flag that may be " +
		"repeated: one value per line"}}
	for _, v := range option.OtherVariables {
		if v.Everyday {
			rows = append(rows, option.Row{Term: v.Name, Text: v.Text})
		}
	}
	return append(rows, option.Row{Term: "NO_COLOR", Text: "Log without colours if not empty; the log is JSON lines " +
		"where stderr is no terminal, unless --log-format says otherwise"})
}

// Signals lists the signals that do not stop the program.
var Signals = []option.Row{
	{Term: "SIGUSR1", Text: "prints on stderr how far it is and what it waits for, and goes on"},
}

// ExitCodes returns the exit codes with their meaning.
func ExitCodes() (rows []option.Row) {
	for _, m := range exit.Meanings {
		rows = append(rows, option.Row{Term: m.Codes, Text: m.Text})
	}
	return rows
}

const helpCommandClosing = `
Every flag may also be in a --json file or the environment, see dma-copy --help;
exit codes are listed there.
`

// newHelpCommand returns `help` and `help COMMAND`, which print what --help prints.
func (p *Program) newHelpCommand(root *cobra.Command, commands []Command) *cobra.Command {
	return &cobra.Command{
		Use:       "help [COMMAND]",
		Short:     "Print the help of a command",
		Hidden:    true,
		ValidArgs: Names(commands),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return root.Help()
			}
			about, _, err := root.Find(args)
			if err != nil || about == root {
				return refuseTopic(args[0], Names(commands))
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

// writeCommandHelp prints the help of the command of this name, or else of the program: the everyday flags, or all.
func (p *Program) writeCommandHelp(w io.Writer, name string, commands []Command, short bool) error {
	about := p.Copy
	if i := slices.IndexFunc(commands, func(c Command) bool { return c.Name == name }); i >= 0 {
		about = commands[i]
	}
	var text strings.Builder
	switch {
	case short:
		writeShortHelp(&text, about, commands)
	case about.Name == "":
		writeProgramHelp(&text, about, commands)
	default:
		writeHelp(&text, about)
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("print the help: %w", err)
	}
	return nil
}

// shortExamples is how many lines of examples the short help has.
const shortExamples = 2

// writeShortHelp writes the everyday flags of a command or, with the names of the commands, of the program.
func writeShortHelp(text *strings.Builder, c Command, commands []Command) {
	usage, about, full := c.Usage(), c.Summary+".\n", "dma-copy "+c.Name
	if c.Name == "" {
		usage, about, _ = strings.Cut(Introduction, "\n\n")
		usage, full = usage+"\n", "dma-copy"
	}
	text.WriteString(usage + "\n" + about + "\nFlags:\n")
	for _, flag := range append(OwnFlags(c), option.Everydays(c.Settings)...) {
		writeFlags(text, flag.Brief())
	}
	if c.Name == "" {
		text.WriteString("\nCommands:\n")
		for _, line := range phrase.Wrap(strings.Join(Names(commands), ", "), helpWidth-2) {
			text.WriteString("  " + line + "\n")
		}
	}
	text.WriteString("\nExamples:\n")
	for _, line := range strings.SplitAfterN(c.Examples, "\n", shortExamples+1)[:shortExamples] {
		text.WriteString("  " + line)
	}
	fmt.Fprintf(text, "\nMore: %s --help, and man %s\n", full, strings.ReplaceAll(full, " ", "-"))
}

// OwnFlags returns the flags of a command, or of the program, that are not options.
func OwnFlags(c Command) []option.Described {
	if c.Name == "" {
		return []option.Described{helpFlag, versionFlag}
	}
	return []option.Described{helpFlag}
}

// writeProgramHelp writes the help of the program.
func writeProgramHelp(text *strings.Builder, self Command, commands []Command) {
	text.WriteString(Introduction)
	writeEveryday(text, self)
	text.WriteString("\nCommands (see \"dma-copy COMMAND --help\"):\n")
	for _, c := range commands {
		writeRow(text, "  "+c.Name, helpColumn, c.Summary, "")
	}
	writeTopics(text, self)
	text.WriteString("\n" + ValueSyntax + "\nEnvironment:\n")
	writeRows(text, "  ", Environment())
	text.WriteString("\nSignals:\n")
	writeRows(text, "  ", Signals)
	text.WriteString("\nExit codes:\n")
	writeRows(text, "  ", ExitCodes())
}

// writeHelp writes the help of a command.
func writeHelp(text *strings.Builder, c Command) {
	text.WriteString(c.Usage() + "\n" + c.About)
	if c.List != nil {
		text.WriteString("\n")
		writeRows(text, "", c.List)
	}
	if c.Notes != "" {
		text.WriteString("\n" + c.Notes)
	}
	writeEveryday(text, c)
	writeTopics(text, c)
	text.WriteString(helpCommandClosing)
}

// writeEveryday writes the everyday flags and the examples.
func writeEveryday(text *strings.Builder, c Command) {
	text.WriteString("\nFlags:\n")
	writeFlags(text, append(OwnFlags(c), option.Everydays(c.Settings)...)...)
	text.WriteString("\nExamples:\n" + indented(c.Examples))
}

// writeTopics writes the other flags by topic.
func writeTopics(text *strings.Builder, c Command) {
	for _, block := range option.ByTopic(c.Settings) {
		text.WriteString("\n" + block.Title + ":\n")
		writeFlags(text, block.List...)
	}
	if c.Name == "" {
		text.WriteString("\n")
		for _, line := range phrase.Wrap(NativeFlags(c.Settings), helpWidth) {
			text.WriteString(line + "\n")
		}
	}
}

// NativeFlags returns a sentence with the flags of a copy that need this program on both sides.
func NativeFlags(s option.Settings) string {
	var names []string
	for _, d := range option.Describe(s) {
		if d.Native {
			names = append(names, d.Names[len(d.Names)-1])
		}
	}
	return "These flags need dma-copy on both sides, and not DOCA's program: " + phrase.And(names) + "."
}

// The layout of the help.
const (
	helpWidth  = 80
	helpColumn = 33 // where the descriptions of flags begin
)

// writeFlags writes the lines about flags.
func writeFlags(text *strings.Builder, flags ...option.Described) {
	for _, flag := range flags {
		term := "  " + strings.Join(flag.Names, ", ")
		if strings.HasPrefix(flag.Names[0], "--") {
			term = "    " + term
		}
		if flag.Value != "" {
			term += " <" + flag.Value + ">"
		}
		writeRow(text, term, helpColumn, flag.Help, flag.Default)
	}
}

// writeRows writes a list. Its descriptions begin behind the longest term.
func writeRows(text *strings.Builder, indent string, rows []option.Row) {
	column := 0
	for _, row := range rows {
		column = max(column, len(indent+row.Term+"  "))
	}
	for _, row := range rows {
		writeRow(text, indent+row.Term, column, row.Text, "")
	}
}

// writeRow writes a term, and its description in a column behind it. A note at the end is kept on one line.
func writeRow(text *strings.Builder, term string, column int, description, note string) {
	if len(term) >= column {
		text.WriteString(term + "\n")
		term = ""
	}
	lines := phrase.Wrap(description, helpWidth-column)
	switch last := &lines[len(lines)-1]; {
	case note == "":
	case column+len(*last+" "+note) <= helpWidth:
		*last += " " + note
	default:
		lines = append(lines, note)
	}
	for _, line := range lines {
		fmt.Fprintf(text, "%-*s%s\n", column, term, line)
		term = ""
	}
}

// indented returns lines with two spaces in front.
func indented(lines string) string {
	var text strings.Builder
	for line := range strings.Lines(lines) {
		text.WriteString("  " + line)
	}
	return text.String()
}

// Usage returns a line for each form of the command.
func (c Command) Usage() string {
	start := "dma-copy " + c.Name + " [Flags]"
	if len(c.Takes) == 0 {
		return "Usage: " + start + "\n"
	}
	between := "\n       " + start + " "
	return "Usage: " + start + " " + strings.Join(c.Takes, between) + "\n"
}
