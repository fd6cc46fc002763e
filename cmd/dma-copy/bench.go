package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/bench"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The arguments of bench.
const (
	benchCopy      = "copy"
	benchTree      = "tree"
	benchConnected = "connected"
	benchMachines  = "machines"
	benchEngine    = "engine"
	benchShow      = "show"
)

func benchCommand() command {
	var s config.Bench
	return command{
		name:    "bench",
		summary: "Measure copies and the DMA engine alone",
		takes:   []string{"[copy|tree|connected|machines|engine]", "show RECORD"},
		about: `Measures the program and its DMA engine on the software device, both sides on
this machine. The results say nothing about a card.

copy         files through the whole program, a process for each side, and the
             same by the tools that are installed
tree         the same with directory trees that it makes: a first copy, and the
             same again when nothing has changed
connected    files and small files by a command that stays connected to a
             daemon (dma-copy serve), and by several at once
machines     files and small files over network connections within this
             machine, and the same by a daemon of rsync, socat with and
             without TLS, and without files by iperf3 and ucx_perftest
engine       memory to memory, no files: the upper bound for a copy
show RECORD  prints what an earlier run wrote with -o json; - is stdin

Without an argument it does copy and engine. All candidates take turns, with the
source in the page cache and no target; ratios are to cp, those of trees also to
rsync -a. A candidate that fails is reported, the others continue, and the exit
code is 12. Temporary files are removed.
`,
		examples: `$ dma-copy bench copy --sizes 64MiB,1GiB --runs 10
$ dma-copy bench tree --trees small,deep --tools cp,rsync
$ dma-copy bench engine -o json > engine.json
$ dma-copy bench show engine.json -o markdown
`,
		complete: benchArguments,
		settings: &s,
		run: func(ctx context.Context, streams streams, args []string, log zerolog.Logger) error {
			return runBench(ctx, streams, s, args, log)
		},
	}
}

func runBench(ctx context.Context, streams streams, s config.Bench, args []string, log zerolog.Logger) error {
	if len(args) == 2 && args[0] == benchShow {
		return fileio.Interruptible(ctx, func() error { return showBench(ctx, streams, s, args[1], log) })
	}
	plan, err := benchPlan(s, args)
	if err != nil {
		return err
	}
	if s.Plot != "" {
		if plan.Copies == nil && plan.Engine == nil {
			return errNotPlotted
		}
		if err := plotFile(s.Plot).Check(); err != nil { // before the measurement, which takes minutes
			return err
		}
	}
	plan.Tell = func(text string) { printBenchProgress(streams, s, text) }
	if plan.Program, err = os.Executable(); err != nil {
		return err
	}
	record, err := bench.Measure(ctx, plan)
	if errors.Is(err, bench.ErrOneSided) {
		return exit.Errorf(exit.Device, "use --driver soft, which has both on one machine", "%w", err)
	}
	if err != nil {
		return err
	}
	if err := writeBench(ctx, streams, s, record); err != nil {
		return err
	}
	return benchOutcome(record)
}

// benchPlan returns what the arguments and the settings ask for.
func benchPlan(s config.Bench, args []string) (bench.Plan, error) {
	plan := bench.Plan{
		Driver: s.Driver.Options(), Model: s.Model, Runs: s.Runs, Warmup: s.Warmup,
		Software: softwareName(), Command: append([]string{"dma-copy"}, os.Args[1:]...),
	}
	if err := s.Driver.ValidateForDevice(); err != nil {
		return plan, err
	}
	known := []string{benchCopy, benchTree, benchConnected, benchMachines, benchEngine}
	if len(args) > 1 || len(args) == 1 && !slices.Contains(known, args[0]) {
		return plan, exit.Usagef("unexpected argument %s: "+
			"dma-copy bench takes copy, tree, connected, machines, engine, show RECORD or nothing",
			quote.Text(args[len(args)-1]))
	}
	switch {
	case len(args) == 1 && args[0] == benchTree:
		plan.Trees = s.TreePlan()
		return plan, nil
	case len(args) == 1 && args[0] == benchConnected:
		plan.Connected = s.ConnectedPlan()
		plan.Connected.Placement = placement.Lanes{} // as push and pull have
		return plan, nil
	case len(args) == 1 && args[0] == benchMachines:
		plan.Machines = s.MachinesPlan()
		plan.Machines.Placement = placement.Lanes{}
		return plan, nil
	}
	if len(args) == 0 || args[0] == benchCopy {
		plan.Copies = s.CopyPlan()
	}
	if len(args) == 0 || args[0] == benchEngine {
		engine, err := s.EnginePlan()
		if err != nil {
			return plan, err
		}
		plan.Engine = engine
	}
	return plan, nil
}

// printBenchProgress prints a line of progress to stderr: a run may take minutes.
func printBenchProgress(streams streams, s config.Bench, text string) {
	if !s.Quiet {
		fmt.Fprintln(streams.stderr, text)
	}
}

// writeBench writes the plot first, so that output on stdout means that all is written.
func writeBench(ctx context.Context, streams streams, s config.Bench, record *bench.Record) error {
	if err := plotBench(ctx, s.Plot, record); err != nil {
		return err
	}
	if err := writeRecord(streams.stdout, s.Form, record); err != nil {
		return fmt.Errorf("print the measurements: %w", err)
	}
	return nil
}

func writeRecord(w io.Writer, form config.BenchForm, record *bench.Record) error {
	if form != config.BenchJSON {
		return record.Write(w, bench.Form(form))
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "\t")
	return encoder.Encode(record)
}

var errNotPlotted = exit.Usagef("--plot draws the files of bench copy and the engine only: leave it out")

func plotBench(ctx context.Context, path string, record *bench.Record) error {
	if path == "" {
		return nil
	}
	if record.Copies == nil && record.Engine == nil {
		return errNotPlotted
	}
	var content bytes.Buffer
	err := record.Plot(&content)
	if errors.Is(err, bench.ErrNothingToPlot) {
		return nil // benchOutcome has the reason
	}
	if err != nil {
		return plotFile(path).Failed(err.Error(), err)
	}
	return plotFile(path).Write(ctx, content.Bytes())
}

// plotFile is the file of --plot, which replaces an existing one.
func plotFile(path string) fileio.Replacement {
	return fileio.Replacement{Path: path, Overwrite: true, Hint: "name another file with --plot"}
}

// benchOutcome returns an error if candidates failed.
func benchOutcome(record *bench.Record) error {
	failed, all := record.Failed()
	if failed == 0 {
		return nil
	}
	code := exit.SomeFailed
	if failed == all {
		code = exit.Failure
	}
	return exit.Errorf(code, "see the lines below the tables, or the errors in the record",
		"%d of %d candidates failed", failed, all)
}

// maxRecordSize bounds what is read of a file that may not be a record, in bytes. A run of hours writes less than 1 MB.
const maxRecordSize = 64 << 20

// showBench prints a record of this version.
func showBench(ctx context.Context, streams streams, s config.Bench, path string, log zerolog.Logger) error {
	text, name, err := readRecord(path, log)
	if err != nil {
		return err
	}
	record, err := bench.ParseRecord(text)
	if err != nil {
		return notARecord(name, err.Error())
	}
	return writeBench(ctx, streams, s, record)
}

// readRecord returns the text of a record and the name of its file for messages.
func readRecord(path string, log zerolog.Logger) (text []byte, name string, err error) {
	from := &fileio.Source{Path: "standard input", File: os.Stdin}
	if path != config.Stream {
		if from, err = fileio.Open(path); err != nil {
			return nil, "", err
		}
		defer from.Close()
	}
	log.Info().Str("path", from.Path).Msg("reading")
	text, err = fileio.ReadAtMost(from.File, maxRecordSize)
	if errors.Is(err, fileio.ErrTooLarge) {
		return nil, "", notARecord(from.Path, "it is larger than "+quantity.Bytes(maxRecordSize))
	}
	if err != nil {
		return nil, "", from.Failed(err)
	}
	return text, from.Path, nil
}

func notARecord(name, why string) error {
	return &job.Error{
		Kind: job.ErrSource, Cause: fmt.Sprintf("%s is not a record: %s", quote.Bare(name), why),
		Next: "name a file that dma-copy bench -o json has written",
	}
}
