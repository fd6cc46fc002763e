package config

import (
	"errors"
	"strings"

	"github.com/dma-copy/dma-copy/internal/bench"
)

// BenchForm is the output format of bench.
type BenchForm string

const (
	benchText     = BenchForm(bench.Text)
	benchMarkdown = BenchForm(bench.Markdown)
	BenchJSON     = BenchForm(OutputJSON)
)

// options implements Settings.
func (s *Bench) options() []option {
	directions := textsOf(bench.HostToDPU, bench.DPUToHost)
	return append(commonOptions(&s.Logging, &s.Driver),
		option{group: AddedFlags, name: "size", value: "SIZE", fallback: "1GiB", json: jsonNumber,
			assign: into(&s.Size, parseSomeBytes),
			help:   "Bytes that a run copies"},
		option{group: AddedFlags, name: "chunks", value: "SIZE,...", fallback: "64KiB,256KiB,1MiB,2MiB", json: jsonText,
			assign: into(&s.Chunks, parseList(parseSomeBytes)),
			help:   "Bytes per task"},
		option{group: AddedFlags, name: "depths", value: "COUNT,...", fallback: "1,4,16,64", json: jsonText,
			assign: into(&s.Depths, parseList(parseCount(1, maxCount))),
			help:   "Tasks in flight"},
		option{group: AddedFlags, name: "directions", value: "DIRECTION,...", fallback: strings.Join(directions, ","),
			json: jsonText, assign: into(&s.Directions, parseList(parseOneOf(bench.HostToDPU, bench.DPUToHost))),
			words: directions, several: true,
			help: "Whether the engine reads from the host, or writes to it"},
		countOption(AddedFlags, "runs", &s.Runs, "5", 1, mostRounds, "Measured rounds, 1 to 1000"),
		countOption(AddedFlags, "warmup", &s.Warmup, "1", 0, mostRounds, "Warm-up rounds before them"),
		option{group: AddedFlags, name: "model", value: "NAME", json: jsonText, assign: into(&s.Model, parseModel),
			help: "Time model of the software device, see softdoca/docs/SOFTDEVICE.md"},
		withLetter("o", choiceOption(AddedFlags, "output", &s.Form, benchText,
			"Output format; docs/bench.schema.json describes json", benchText, benchMarkdown, BenchJSON)),
		quietOption(&s.Quiet, "Print no progress"),
	)
}

const mostRounds = 1000

// Plan returns what is measured.
func (s *Bench) Plan() bench.Plan {
	return bench.Plan{
		Bytes: s.Size, Chunks: s.Chunks, Depths: s.Depths, Directions: s.Directions,
		Settings: bench.Settings{Driver: s.Driver.Options(), Model: s.Model, Runs: s.Runs, Warmup: s.Warmup},
	}
}

// parseSomeBytes accepts sizes of at least one byte: less has no throughput.
func parseSomeBytes(text string) (int64, error) {
	size, err := parseSize(text)
	if err == nil && size == 0 {
		return 0, errors.New("nothing to measure; give a size such as 2MiB")
	}
	return size, err
}

// modelName prevents a model from bringing limits of its own. The device checks whether a model of that name exists.
var modelName = pattern(`[A-Za-z0-9_.-]+`)

func parseModel(text string) (string, error) {
	if !modelName().MatchString(text) {
		return "", errors.New("not a model; give a name such as bluefield3")
	}
	return text, nil
}
