package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/bench"
	"github.com/dma-copy/dma-copy/internal/quote"
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
	return slices.Concat(commonOptions(&s.Logging, &s.Driver), s.whatOptions(), s.howOptions())
}

func (s *Bench) whatOptions() []option {
	return []option{
		{group: AddedFlags, name: "size", value: "SIZE", fallback: "1GiB", json: jsonNumber,
			assign: into(&s.Size, parseSomeBytes),
			help:   "Bytes that a run copies"},
		{group: AddedFlags, name: "chunks", value: "SIZE,...", fallback: "64KiB,256KiB,1MiB,2MiB", json: jsonText,
			assign: into(&s.Chunks, parseList(parseSomeBytes)),
			help:   "Bytes per task"},
		{group: AddedFlags, name: "depths", value: "COUNT,...", fallback: "1,4,16,64", json: jsonText,
			assign: into(&s.Depths, parseList(parseSomeTasks)),
			help:   "Tasks in flight"},
		{group: AddedFlags, name: "directions", value: "DIRECTION,...",
			fallback: string(bench.HostToDPU) + "," + string(bench.DPUToHost), json: jsonText,
			assign: into(&s.Directions, parseList(parseOneOf(bench.HostToDPU, bench.DPUToHost))),
			words:  textsOf(bench.HostToDPU, bench.DPUToHost), several: true,
			help: "Whether the engine reads from the host, or writes to it"},
	}
}

func (s *Bench) howOptions() []option {
	return []option{
		{group: AddedFlags, name: "runs", value: "COUNT", fallback: "5", json: jsonNumber,
			assign: into(&s.Runs, parseRounds(1)),
			help:   "Measured rounds, 1 to 1000"},
		{group: AddedFlags, name: "warmup", value: "COUNT", fallback: "1", json: jsonNumber,
			assign: into(&s.Warmup, parseRounds(0)),
			help:   "Warm-up rounds before them"},
		{group: AddedFlags, name: "model", value: "NAME", json: jsonText,
			assign: into(&s.Model, parseModel),
			help:   "Time model of the software device, see softdoca/docs/SOFTDEVICE.md"},
		withLetter("o", choiceOption(AddedFlags, "output", &s.Form, benchText,
			"Output format; docs/bench.schema.json describes json", benchText, benchMarkdown, BenchJSON)),
		quietOption(&s.Quiet, "Print no progress"),
	}
}

// Plan returns what is measured.
func (s *Bench) Plan() bench.Plan {
	return bench.Plan{
		Bytes: s.Size, Chunks: s.Chunks, Depths: s.Depths, Directions: s.Directions,
		Settings: bench.Settings{Driver: s.Driver.Options(), Model: s.Model, Runs: s.Runs, Warmup: s.Warmup},
	}
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

// parseSomeTasks accepts at least one task in flight.
func parseSomeTasks(text string) (int, error) {
	count, err := parseCount(text)
	if err == nil && count == 0 {
		return 0, errors.New("nothing in flight; give a number such as 16")
	}
	return count, err
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
