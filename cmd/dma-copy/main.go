// Command dma-copy copies a file between a host and its BlueField DPU.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	streams := standardStreams()
	ctx, stop := withSignals(context.Background())
	err := execute(ctx, streams, os.Args[1:], runner(streams))
	// The outcome is decided; only the report is left.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	stop()
	if err != nil {
		reportError(streams.stderr, err)
	}
	os.Exit(exitCode(err))
}
