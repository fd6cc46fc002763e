package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/lab/bench"
	"github.com/dma-copy/dma-copy/lab/contest"
)

// list is a flag of values that are separated by commas, none twice.
type list[T comparable] struct {
	values *[]T
	parse  func(string) (T, error)
}

func (l list[T]) String() string {
	if l.values == nil {
		return ""
	}
	var words []string
	for _, value := range *l.values {
		words = append(words, fmt.Sprint(value))
	}
	return strings.Join(words, ",")
}

// Set implements flag.Value.
func (l list[T]) Set(text string) error {
	var values []T
	for word := range strings.SplitSeq(text, ",") {
		value, err := l.parse(word)
		if err != nil {
			return err
		}
		if slices.Contains(values, value) {
			return fmt.Errorf("%q is given twice", word)
		}
		values = append(values, value)
	}
	*l.values = values
	return nil
}

// oneOf returns a parser of the words.
func oneOf[T ~string](words ...T) func(string) (T, error) {
	return func(text string) (T, error) {
		if !slices.Contains(words, T(text)) {
			return "", fmt.Errorf("%q is not one of %v", text, words)
		}
		return T(text), nil
	}
}

func anyWord(text string) (string, error) { return text, nil }

// count parses a number of at least 0.
func count(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}

// positive returns the parser of numbers that are not 0.
func positive[T int | int64](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		value, err := parse(text)
		if err == nil && value == 0 {
			err = errors.New("nothing to measure")
		}
		return value, err
	}
}

// The words for all tools, or for none.
const (
	allTools = "all"
	noTools  = "none"
)

// toolList is the list of tools, or one of those words.
type toolList struct{ list[string] }

// Set implements flag.Value.
func (l toolList) Set(text string) error {
	switch text {
	case allTools:
		*l.values = contest.ToolNames
		return nil
	case noTools:
		*l.values = nil
		return nil
	}
	return l.list.Set(text)
}

// newFlags returns the flags of every measurement, and their values before a command line changes them.
func newFlags(args []string, stderr io.Writer) (*flag.FlagSet, *bench.Settings) {
	s := &bench.Settings{
		Driver: doca.Options{Choice: doca.ChooseSoft}, Command: append([]string{"lab"}, args...),
		Tell: func(text string) { fmt.Fprintln(stderr, text) },
	}
	flags := flag.NewFlagSet("lab "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.Runs, "runs", 5, "measured rounds")
	flags.IntVar(&s.Warmup, "warmup", 1, "rounds before them")
	flags.StringVar(&s.Model, "model", "", "time model of the software device, see softdoca/docs/SOFTDEVICE.md")
	flags.StringVar(&s.Software, "software", "dma-copy", "name and version of dma-copy for the record")
	return flags, s
}

// parse reads the flags of a command line, which has nothing else.
func parse(flags *flag.FlagSet, args []string, s *bench.Settings) error {
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 || s.Runs < 1 || s.Warmup < 0 {
		return fmt.Errorf("wrong arguments or numbers of rounds: lab %s -h lists the flags", args[0])
	}
	return nil
}

// parseEngine returns what a command line asks to measure of the engine alone.
func parseEngine(args []string, stderr io.Writer) (bench.Plan, error) {
	p := bench.Plan{
		Bytes: 1 << 30, Chunks: []int64{64 << 10, 256 << 10, 1 << 20, 2 << 20}, Depths: []int{1, 4, 16, 64},
		Directions: []bench.Direction{bench.HostToDPU, bench.DPUToHost},
	}
	flags, s := newFlags(args, stderr)
	size := positive(quantity.ParseSize)
	flags.Func("size", "`bytes` that a run copies (default 1GiB)", func(text string) (err error) {
		p.Bytes, err = size(text)
		return err
	})
	flags.Var(list[int64]{&p.Chunks, size}, "chunks", "bytes per task")
	flags.Var(list[int]{&p.Depths, positive(count)}, "depths", "tasks in flight")
	flags.Var(list[bench.Direction]{&p.Directions, oneOf(p.Directions...)}, "directions",
		"whether the engine reads from the host, or writes to it")
	err := parse(flags, args, s)
	p.Settings = *s
	return p, err
}

// parsePlan returns what a command line asks to measure: its first word is the contest.
func parsePlan(args []string, stderr io.Writer) (contest.Plan, error) {
	var p contest.Plan
	sizes, shapes := []int64{2 << 20, 64 << 20, 1 << 30}, filetree.Shapes
	daemons := []contest.DaemonSide{contest.DaemonOnDPU, contest.DaemonOnHost}
	files, clients := 0, 16
	s := contest.CopySettings{
		Chunks: []int64{0}, Depths: []int{0}, Directions: []bench.Direction{bench.HostToDPU, bench.DPUToHost},
		Digests: []string{"crc32c"}, Paths: []string{"auto"}, Durability: "none", Tools: contest.ToolNames,
	}
	flags, settings := newFlags(args, stderr)
	flags.Var(list[int64]{&sizes, quantity.ParseSize}, "sizes", "file `SIZE,...`")
	flags.Var(list[filetree.Shape]{&shapes, oneOf(filetree.Shapes...)}, "trees",
		"`TREE,...`: small, source, deep, huge-dir")
	flags.IntVar(&files, "files", files, "files of each tree; 0: as many as it has by itself")
	flags.Var(list[contest.DaemonSide]{&daemons, oneOf(daemons...)}, "daemons", "connected: `SIDE,...` of the daemon")
	flags.IntVar(&clients, "clients", clients, "connected: clients at once; 0: none")
	flags.Var(list[int64]{&s.Chunks, quantity.ParseSize}, "chunks", "as --chunk of a copy; 0 is automatic")
	flags.Var(list[int]{&s.Depths, count}, "depths", "as --depth of a copy; 0 is automatic")
	flags.Var(list[bench.Direction]{&s.Directions, oneOf(s.Directions...)}, "directions",
		"host-to-dpu, dpu-to-host; machines: the command pushes, or pulls")
	flags.Var(list[string]{&s.Digests, anyWord}, "digests", "as --digest of a copy")
	flags.Var(list[string]{&s.Paths, anyWord}, "paths",
		"as --path of a copy; machines: tls, tcp, am, rma, or auto for all")
	flags.StringVar(&s.Durability, "durability", s.Durability,
		"as --durability of a copy; each tool's copy is followed by a sync")
	flags.Var(toolList{list[string]{&s.Tools, oneOf(contest.ToolNames...)}}, "tools",
		"`TOOL,...` to compare with, all or none")
	flags.StringVar(&s.Directory, "dir", "", "directory for source and target; empty: that for temporary files")
	flags.StringVar(&p.Program, "program", "", "executable of dma-copy; empty: beside this one")
	if err := parse(flags, args, settings); err != nil {
		return p, err
	}
	p.Settings = *settings
	if p.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return p, err
		}
		p.Program = filepath.Join(filepath.Dir(self), "dma-copy")
	}
	switch args[0] {
	case "copy":
		p.Copies = &contest.CopyPlan{Sizes: sizes, CopySettings: s}
	case "tree":
		p.Trees = &contest.TreePlan{Shapes: shapes, Files: files, CopySettings: s}
	case "connected":
		p.Connected = &contest.ConnectedPlan{Sizes: sizes, Files: files, Daemons: daemons, Clients: clients,
			CopySettings: s}
	case "machines":
		p.Machines = &contest.MachinesPlan{Sizes: sizes, Files: files, CopySettings: networkSettings(s)}
	default:
		return p, fmt.Errorf("unknown contest %q: copy, tree, connected, machines or engine", args[0])
	}
	return p, nil
}

// networkSettings returns the settings of copies between machines, whose command has the part of the host.
func networkSettings(s contest.CopySettings) contest.CopySettings {
	if slices.Contains(s.Paths, "auto") {
		s.Paths = contest.NetworkPaths
	}
	var directions []bench.Direction
	for _, direction := range s.Directions {
		if direction == bench.HostToDPU {
			directions = append(directions, contest.Push)
		} else {
			directions = append(directions, contest.Pull)
		}
	}
	s.Directions = directions
	return s
}
