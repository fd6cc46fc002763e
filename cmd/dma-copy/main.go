// Command dma-copy copies a file between a host and its BlueField DPU.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
)

// The kernel gives a signal of the process to its first thread, if that does not block it, and to no other one while
// that thread hangs in a system call. So the first thread is main's alone, which only waits.
func init() { runtime.LockOSThread() }

func main() {
	streams := standardStreams()
	ctx, stop := withSignals(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, streams, os.Args[1:], runner(streams)) }()
	err := <-ended
	// The outcome is decided; only the report is left.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	stop()
	if err != nil {
		report.WriteError(streams.stderr, err)
	}
	os.Exit(report.ExitCode(err))
}
