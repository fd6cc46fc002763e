// Package copy is what the program does without a command: it copies between the two sides of a device.
package copy

import (
	"context"
	"os"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/operations"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/report"
)

// CopyExamples are the examples of a copy, like the examples of a command.
const CopyExamples = `host$ dma-copy -p b1:00.1 -f image.bin
dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f /var/tmp/image.bin
host$ dma-copy -p b1:00.1 -f photos --exclude '*.tmp'
dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f /var/tmp/photos
host$ tar c photos | dma-copy -p b1:00.1 -f -
dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f photos.tar
`

// greeting answers a command line with nothing on it, where no file is named in another way.
const greeting = `dma-copy copies files and directories between a host and its BlueField DPU.
  host$ dma-copy -p b1:00.1 -f image.bin
  dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f /var/tmp/image.bin
  host$ dma-copy push image.bin :inbox/    # where the DPU runs dma-copy serve
See dma-copy -h for the everyday flags, and dma-copy --help for all of them.
`

// Command returns what the program does without the name of a command.
func Command() root.Command {
	var s copying.Settings
	refused := copying.Refused(&s)
	return root.Command{
		Settings: &s,
		Examples: CopyExamples,
		Refused:  refused,
		Greeting: func() string {
			if s.File != "" || s.Output == option.OutputJSON { // whoever reads JSON gets an event
				return ""
			}
			return greeting
		},
		Run: func(ctx context.Context, streams root.Streams, _ []string, log zerolog.Logger) error {
			if err := s.Validate(); err != nil {
				return refused(streams, err)
			}
			root.IgnoreSIGPIPE()
			return runCopy(ctx, streams, s, log)
		},
	}
}

// runCopy carries out a copy and reports on it.
func runCopy(ctx context.Context, streams root.Streams, s copying.Settings, log zerolog.Logger) error {
	var uses copying.StreamUses
	var refused error
	if s.IsStream() {
		uses = copying.StreamUses{"-f -", "-f -", "-f -"}
	}
	if s.IsStream() && streams.Data.Nowhere {
		refused = exit.Usagef(
			"-f - has nothing to read or write: both stdin and stdout are a terminal, so connect one to a file or " +
				"a pipe")
	}
	return copying.Run(ctx, streams, s, refused, uses, log, func(ctx context.Context, r report.Reporter) (err error) {
		chosen := inventory.Selection{Device: s.Device, Representor: s.Representor, Role: s.Role}
		on, err := connect.Open(s.Driver.Options(), chosen, log)
		if err != nil {
			return err
		}
		defer on.End(&err)
		return copyOnDevice(ctx, on, report.NewMonitor(r, s.Asked()), streams, s, log)
	})
}

// copyOnDevice carries out the copy on a device.
func copyOnDevice(
	ctx context.Context, on *connect.Side, r *report.Monitor, streams root.Streams, s copying.Settings,
	log zerolog.Logger,
) error {
	if on.MovesNothing() {
		return connect.ErrMovesNothing
	}
	options := copying.Options(s, on.Device, on.Is, streams.Data, log)
	copying.PreserveAsUser(&options, os.Geteuid(), log)
	options.Location = native.Location{Machine: connect.MachineName(), User: connect.UserName(),
		Path: connect.PathForPeers(s.File)}
	if s.With != "" {
		options.Word = native.WordOf(s.With)
	}
	_, err := copying.Select(ctx, s, streams.Stdin, &options)
	if err == nil {
		err = placement.Apply(placement.ThisMachine, on.Near(), s.Placement, log)
	}
	if err != nil {
		dmaxfer.TellPeer(ctx, options, err)
		return err
	}
	path := on.Path(s.Driver.Options())
	path.File = s.File
	path.Wait = report.WaitForPeer(on.Is, on.HostFunction(s.Representor), s.File, s.With, s.Wait)
	r.Begin(path)
	return r.Conclude(operations.Transfer(ctx, r, root.ProgressRequests(ctx), options, dmaxfer.Run))
}
