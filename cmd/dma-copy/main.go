// Command dma-copy copies files and directories between a host and its BlueField DPU.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/report"
)

// The kernel delivers a signal for the process to its first thread unless that blocks it, even while that thread hangs
// in a system call. So the first thread is reserved for main, which only waits.
func init() { runtime.LockOSThread() }

// The first thread only waits, because a switch to the goroutine of main and back would be one of threads.
func main() {
	go func() { os.Exit(run()) }()
	select {}
}

// run executes the command line of the process, prints its error, and returns the exit code.
func run() int {
	streams := root.StandardStreams()
	ctx, stop := root.WithSignals(context.Background())
	err := program.New().Execute(ctx, streams, os.Args[1:])
	// The outcome is decided; only the report is left.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
	stop()
	if err != nil {
		report.WriteError(streams.Stderr, err)
	}
	return exit.Code(err)
}
