package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/bench"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/filetree"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// BenchForm is the output format of bench.
type BenchForm string

const (
	benchText     = BenchForm(bench.Text)
	benchMarkdown = BenchForm(bench.Markdown)
	BenchJSON     = BenchForm(OutputJSON)
)

// The defaults. A 0 is chosen by the program.
var (
	defaultSizes        = []int64{2 << 20, 64 << 20, 1 << 30}
	defaultChunks       = []int64{0}
	defaultDepths       = []int{0}
	defaultEngineBytes  = int64(1 << 30)
	defaultEngineChunks = []int64{64 << 10, 256 << 10, 1 << 20, 2 << 20}
	defaultEngineDepths = []int{1, 4, 16, 64}
)

// options implements Settings.
func (s *Bench) options() []option {
	return slices.Concat(commonOptions(&s.Logging, &s.Driver), s.whatOptions(), s.howOptions(), s.reportOptions())
}

func (s *Bench) whatOptions() []option {
	return []option{
		{group: AddedFlags, name: "sizes", value: "SIZE,...", json: jsonText,
			assign: into(&s.Sizes, parseList(parseSomeBytes)),
			help: "File sizes; the largest is also what a run of\nthe engine copies\n" +
				"(default 2MiB,64MiB,1GiB; engine: 1GiB)"},
		{group: AddedFlags, name: "trees", value: "TREE,...", json: jsonText,
			assign: into(&s.Trees, parseList(parseOneOf(filetree.Shapes...))), words: textsOf(filetree.Shapes...),
			several: true,
			help: "Trees: small (10,000 files of 4 KiB), source\n(5,000 of a source tree), deep (300 levels),\n" +
				"huge-dir (100,000 in one directory); default:\nall of them"},
		{group: AddedFlags, name: "files", value: "COUNT", fallback: "0", json: jsonNumber,
			assign: into(&s.Files, parseFiles),
			help:   "Files of each tree; 0: as many as it has by\nitself"},
		{group: AddedFlags, name: "daemons", value: "SIDE,...",
			fallback: string(bench.DaemonOnDPU) + "," + string(bench.DaemonOnHost), json: jsonText,
			assign: into(&s.Daemons, parseList(parseOneOf(bench.DaemonOnDPU, bench.DaemonOnHost))),
			words:  textsOf(bench.DaemonOnDPU, bench.DaemonOnHost), several: true,
			help: "connected: sides of the daemon"},
		{group: AddedFlags, name: "clients", value: "COUNT", fallback: "16", json: jsonNumber,
			assign: into(&s.Clients, parseClients),
			help:   "connected: clients at once, with a daemon on\nthe DPU and the smallest file; 0: none"},
		{group: AddedFlags, name: "chunks", value: "SIZE,...", json: jsonText,
			assign: into(&s.Chunks, parseList(parseChunk)),
			help: "As --chunk of a copy, where 0 is automatic; for\nthe engine, bytes per task\n" +
				"(default 0; engine: 64KiB,256KiB,1MiB,2MiB)"},
		{group: AddedFlags, name: "depths", value: "COUNT,...", json: jsonText,
			assign: into(&s.Depths, parseList(parseCount)),
			help:   "As --depth of a copy; for the engine, tasks in\nflight (default 0; engine: 1,4,16,64)"},
		{group: AddedFlags, name: "directions", value: "DIRECTION,...",
			fallback: string(bench.HostToDPU) + "," + string(bench.DPUToHost), json: jsonText,
			assign: into(&s.Directions, parseList(parseOneOf(bench.HostToDPU, bench.DPUToHost))),
			words:  textsOf(bench.HostToDPU, bench.DPUToHost), several: true,
			help: "Direction: the engine reads from the host, or\nwrites to it; machines: the command pushes, or\n" +
				"pulls"},
		{group: AddedFlags, name: "digests", value: "DIGEST,...", fallback: defaultDigest.String(), json: jsonText,
			assign: into(&s.Digests, parseList(parseDigestName)), words: digest.Names, several: true,
			help: "As --digest of a copy"},
		{group: AddedFlags, name: "paths", value: "PATH,...", fallback: string(PathAuto), json: jsonText,
			assign: into(&s.Paths, parseList(parsePathName)), words: pathNames, several: true,
			help: "As --path of a copy; machines: tls, tcp, am and\nrma, which auto stands for"},
		{group: AddedFlags, name: "durability", fallback: "none", json: jsonText,
			assign: into(&s.Durability, parseDurability), words: durabilities,
			help: "As --durability of a copy; unless none, each\ntool's copy is followed by a sync of the same"},
		{group: AddedFlags, name: "tools", value: "TOOL,...", fallback: "all", json: jsonText,
			assign: into(&s.Tools, parseTools), words: toolWords, several: true,
			help: "Tools to compare with, if installed: cp, rsync,\ndd, socat, tar, limit, iperf3, ucx_perftest; or\n" +
				"all, or none. dd, socat, limit, iperf3 and\nucx_perftest copy files only, tar copies trees\n" +
				"only; limit is the upper bound of two processes"},
	}
}

func (s *Bench) howOptions() []option {
	return []option{
		directoryOption(AddedFlags, "dir", &s.Directory, "Directory for source and target, in a temporary\n"+
			"subdirectory; default: the one for temporary\nfiles"),
		{group: AddedFlags, name: "runs", value: "COUNT", fallback: "5", json: jsonNumber,
			assign: into(&s.Runs, parseRounds(1)),
			help:   "Measured rounds, 1 to 1000"},
		{group: AddedFlags, name: "warmup", value: "COUNT", fallback: "1", json: jsonNumber,
			assign: into(&s.Warmup, parseRounds(0)),
			help:   "Warm-up rounds before them"},
		{group: AddedFlags, name: "model", value: "NAME", json: jsonText,
			assign: into(&s.Model, parseModel),
			help:   "Time model of the software device, see\nsoftdoca/docs/SOFTDEVICE.md"},
	}
}

func (s *Bench) reportOptions() []option {
	return []option{
		withLetter("o", choiceOption(AddedFlags, "output", &s.Form, benchText,
			"Output format; docs/bench.schema.json describes\njson", benchText, benchMarkdown, BenchJSON)),
		fileOption(AddedFlags, "plot", "FILE", &s.Plot, "Also write a plot as SVG; replaces the file"),
		quietOption(&s.Quiet, "Print no progress"),
	}
}

// CopyPlan returns what is measured of copies of files, with defaults for what was not given.
func (s *Bench) CopyPlan() *bench.CopyPlan {
	return &bench.CopyPlan{Sizes: orElse(s.Sizes, defaultSizes), CopySettings: s.copySettings()}
}

// TreePlan returns what is measured of copies of trees, with defaults for what was not given.
func (s *Bench) TreePlan() *bench.TreePlan {
	return &bench.TreePlan{Shapes: orElse(s.Trees, filetree.Shapes), Files: s.Files, CopySettings: s.copySettings()}
}

// ConnectedPlan returns what is measured of copies over connections to daemons, with defaults for what was not given.
func (s *Bench) ConnectedPlan() *bench.ConnectedPlan {
	return &bench.ConnectedPlan{
		Sizes: orElse(s.Sizes, defaultSizes), Files: s.Files, Daemons: s.Daemons, Clients: s.Clients,
		CopySettings: s.copySettings(),
	}
}

// MachinesPlan returns what is measured of copies over network connections, with defaults for what was not given.
func (s *Bench) MachinesPlan() *bench.MachinesPlan {
	settings := s.copySettings()
	if slices.Contains(settings.Paths, string(PathAuto)) {
		settings.Paths = bench.NetworkPaths
	}
	settings.Directions = nil
	for _, direction := range s.Directions {
		settings.Directions = append(settings.Directions, networkDirections[direction])
	}
	return &bench.MachinesPlan{Sizes: orElse(s.Sizes, defaultSizes), Files: s.Files, CopySettings: settings}
}

// networkDirections are those of bench machines, whose command has the part of the host.
var networkDirections = map[bench.Direction]bench.Direction{
	bench.HostToDPU: bench.Push, bench.DPUToHost: bench.Pull,
}

func (s *Bench) copySettings() bench.CopySettings {
	return bench.CopySettings{
		Chunks: orElse(s.Chunks, defaultChunks), Depths: orElse(s.Depths, defaultDepths),
		Directions: s.Directions, Digests: s.Digests, Paths: s.Paths,
		Durability: s.Durability.String(), Directory: s.Directory,
		Tools: s.Tools,
	}
}

// EnginePlan returns what is measured of the engine alone. A chunk or depth of 0 is an error: only a copy can choose
// it.
func (s *Bench) EnginePlan() (*bench.EnginePlan, error) {
	plan := &bench.EnginePlan{
		Bytes: defaultEngineBytes, Chunks: orElse(s.Chunks, defaultEngineChunks),
		Depths: orElse(s.Depths, defaultEngineDepths), Directions: s.Directions,
	}
	if len(s.Sizes) > 0 {
		plan.Bytes = slices.Max(s.Sizes)
	}
	switch {
	case slices.Contains(plan.Chunks, 0):
		return nil, exit.Usagef("--chunks 0 is for copies only: give the engine's task sizes, or name bench copy")
	case slices.Contains(plan.Depths, 0):
		return nil, exit.Usagef("--depths 0 is for copies only: give the engine's depths, or name bench copy")
	}
	return plan, nil
}

func orElse[T any](given, otherwise []T) []T {
	if len(given) == 0 {
		return otherwise
	}
	return given
}

// parseList returns a parser of comma-separated values without duplicates.
func parseList[T comparable](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) ([]T, error) {
		var values []T
		for word := range strings.SplitSeq(text, ",") {
			value, err := parse(word)
			if err != nil {
				return nil, fmt.Errorf("%s is %w", quote.Text(word), err)
			}
			if slices.Contains(values, value) {
				return nil, fmt.Errorf("%s is given twice; leave one out", quote.Text(word))
			}
			values = append(values, value)
		}
		return values, nil
	}
}

var parsePositiveSize = parseSize("1048576, 512MiB or 4G", "larger than any file; give a size such as 4GiB")

// parseSomeBytes accepts sizes of at least one byte: less has no throughput.
func parseSomeBytes(text string) (int64, error) {
	size, err := parsePositiveSize(text)
	if err == nil && size == 0 {
		return 0, errors.New("nothing to measure; give a size such as 2MiB")
	}
	return size, err
}

func parseDigestName(text string) (string, error) {
	a, err := parseCopyDigest(text)
	return a.String(), err
}

func parsePathName(text string) (string, error) { return parseOneOf(pathNames()...)(text) }

func pathNames() []string {
	return append([]string{string(PathAuto), string(PathDMA), string(PathFast)}, bench.NetworkPaths...)
}

// The words for several tools, or for no tool.
const (
	allTools = "all"
	noTools  = "none"
)

func parseTools(text string) ([]string, error) {
	switch text {
	case allTools:
		return bench.ToolNames, nil
	case noTools:
		return nil, nil
	}
	return parseList(parseOneOf(bench.ToolNames...))(text)
}

func toolWords() []string { return append([]string{allTools, noTools}, bench.ToolNames...) }

// mostFiles bounds the time that making a tree takes, and the memory of comparing it.
const mostFiles = 1_000_000

func parseFiles(text string) (int, error) {
	count, err := parseCount(text)
	if err != nil || count > mostFiles {
		return 0, fmt.Errorf("not a number of files; give 1 to %d, or 0 for that of each tree", mostFiles)
	}
	return count, nil
}

// mostClients is the most connections that a daemon has by default, but for the one of the other measurements.
const mostClients = 63

func parseClients(text string) (int, error) {
	count, err := parseCount(text)
	if err != nil || count > mostClients {
		return 0, fmt.Errorf("not a number of clients; give 1 to %d, or 0 to leave them out", mostClients)
	}
	return count, nil
}

const mostRounds = 1000

func parseRounds(least int) func(string) (int, error) {
	return func(text string) (int, error) {
		count, err := parseCount(text)
		if err != nil || count < least || count > mostRounds {
			return 0, fmt.Errorf("not a number of rounds; give %d to %d", least, mostRounds)
		}
		return count, nil
	}
}

// modelName prevents a model from bringing limits of its own. The device checks whether a model of that name exists.
var modelName = pattern(`[A-Za-z0-9_.-]+`)

func parseModel(text string) (string, error) {
	if !modelName().MatchString(text) {
		return "", errors.New("not a model; give a name such as bluefield3")
	}
	return text, nil
}
