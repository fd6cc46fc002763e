package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/bench"
)

// benchName is the name of the command that measures the device. It is not in the help.
const benchName = "bench"

func benchCommand() command {
	var s config.Bench
	return command{
		name:    benchName,
		summary: "Measure the DMA engine alone",
		about: `Measures the DMA engine from memory to memory, without files: the upper bound
for a copy. Both sides are on this machine. A combination that fails is
reported, the others continue, and the exit code is 12.
`,
		examples: `$ dma-copy bench --chunks 256KiB,1MiB --depths 1,4,16
$ dma-copy bench -o json > engine.json
`,
		settings: &s,
		run: func(ctx context.Context, streams streams, _ []string, _ zerolog.Logger) error {
			return runBench(ctx, streams, s)
		},
	}
}

func runBench(ctx context.Context, streams streams, s config.Bench) error {
	if err := s.Driver.ValidateForDevice(); err != nil {
		return err
	}
	plan := s.Plan()
	plan.Software, plan.Command = softwareName(), append([]string{"dma-copy"}, os.Args[1:]...)
	plan.Tell = func(text string) {
		if !s.Quiet {
			fmt.Fprintln(streams.stderr, text)
		}
	}
	record, err := bench.Measure(ctx, plan)
	if errors.Is(err, bench.ErrOneSided) {
		return exit.Errorf(exit.Device, "use --driver soft, which has both on one machine", "%w", err)
	}
	if err != nil {
		return err
	}
	if err := writeBench(streams.stdout, s.Form, record); err != nil {
		return fmt.Errorf("print the measurements: %w", err)
	}
	return benchOutcome(record.Engine.Failed())
}

func writeBench(w io.Writer, form config.BenchForm, record *bench.Record) error {
	if form != config.BenchJSON {
		return record.Write(w, bench.Form(form))
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "\t")
	return encoder.Encode(record)
}

// benchOutcome returns an error if candidates failed.
func benchOutcome(failed, all int) error {
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
