// Command lab measures dma-copy beside other tools, and makes the summary and drawings of docs/ from its records.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/dma-copy/dma-copy/lab/bench"
	"github.com/dma-copy/dma-copy/lab/contest"
)

const usage = `Usage: lab copy|tree|connected|machines|engine [FLAGS] > RECORD
       lab show [-markdown] RECORD
       lab page RESULTS DOCS

copy         files through the whole program, a process for each side, and the
             same by the tools that are installed
tree         the same with directory trees that it makes: a first copy, and the
             same again when nothing has changed
connected    files and small files by a command that stays connected to a
             daemon (dma-copy serve), and by several at once
machines     files and small files over network connections within this
             machine, and the same by a daemon of rsync, socat with and
             without TLS, and without files by iperf3 and ucx_perftest
engine       the DMA engine of the software device alone, from memory to
             memory: the upper bound for a copy
show         prints the tables of a record
page         writes the summary and the drawings of benchmarks.md in DOCS from
             the records in RESULTS

All candidates take turns, with the source in the page cache and no target. One
that fails is reported, the others continue, and the exit code is 12. Temporary
files are removed. "lab copy -h" and "lab engine -h" list the flags.
`

// someFailed is the exit code if candidates failed and the record was written.
const someFailed = 12

var errSomeFailed = errors.New("some candidates failed: see their errors in the record")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errSomeFailed):
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(someFailed)
	default:
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("copy, tree, connected, machines, engine, show or page is missing: lab help lists them")
	}
	switch args[0] {
	case "show":
		return show(args[1:], stdout)
	case "page":
		if len(args) != 3 {
			return errors.New("page takes the directories of the results and of the pages")
		}
		return writePages(args[1], args[2])
	case "-h", "--help", "help":
		_, err := io.WriteString(stdout, usage)
		return err
	}
	record, err := measure(ctx, args, stderr)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(record); err != nil {
		return err
	}
	if failed, _ := record.Failed(); failed > 0 {
		return errSomeFailed
	}
	return nil
}

func measure(ctx context.Context, args []string, stderr io.Writer) (*contest.Record, error) {
	if args[0] != "engine" {
		plan, err := parsePlan(args, stderr)
		if err != nil {
			return nil, err
		}
		return contest.Measure(ctx, plan)
	}
	plan, err := parseEngine(args, stderr)
	if err != nil {
		return nil, err
	}
	record, err := bench.Measure(ctx, plan)
	if err != nil {
		return nil, err
	}
	return &contest.Record{Record: *record}, nil
}
