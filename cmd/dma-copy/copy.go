package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/placement"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// errDurationLimit is the cause of a context that --max-duration has ended.
var errDurationLimit = exit.Errorf(exit.Limit, "raise --max-duration", "stopped by --max-duration")

// errMovesNothing refuses a device that moves no bytes: without a digest the target would silently be a file of zeros.
var errMovesNothing error = exit.Errorf(exit.Usage, inventory.HintMoveBytes,
	"the software device is set to move no bytes, so nothing would be copied")

// copyExamples are the examples of a copy, as those of a command.
const copyExamples = `host$ dma-copy -p b1:00.1 -f image.bin
dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f /var/tmp/image.bin
host$ dma-copy -p b1:00.1 -f photos --exclude '*.tmp'
dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f /var/tmp/photos
host$ tar c photos | dma-copy -p b1:00.1 -f -
dpu$  dma-copy -p 03:00.1 -r b1:00.1 -f photos.tar
`

// copyCommand is what the program does without the name of a command.
func copyCommand() command {
	var s config.Copy
	refused := refusedCopy(&s)
	return command{
		settings: &s,
		examples: copyExamples,
		refused:  refused,
		run: func(ctx context.Context, streams streams, _ []string, log zerolog.Logger) error {
			if err := s.Validate(); err != nil {
				return refused(streams, err)
			}
			ignoreSIGPIPE()
			return runCopy(ctx, streams, s, log)
		},
	}
}

// refusedCopy returns the command.refused of a command that copies. With -o json it writes the error as an event.
func refusedCopy(s *config.Copy) func(streams, error) error {
	return func(streams streams, err error) error {
		ignoreSIGPIPE()
		if s.Output == option.OutputJSON {
			output.New(streams.stdout, streams.stderr, streams.screen, s.Form, s.IsStream(), zerolog.Nop()).Fail(err)
		}
		return err
	}
}

// runCopy carries out a copy and reports on it.
func runCopy(ctx context.Context, streams streams, s config.Copy, log zerolog.Logger) error {
	var uses streamUses
	var refused error
	if s.IsStream() {
		uses = streamUses{"-f -", "-f -", "-f -"}
	}
	if s.IsStream() && streams.data.nowhere {
		refused = exit.Usagef(
			"-f - has nothing to read or write: both stdin and stdout are a terminal, so connect one to a file or " +
				"a pipe")
	}
	return reported(ctx, streams, s, refused, uses, log, func(ctx context.Context, r output.Reporter) (err error) {
		chosen := inventory.Selection{Device: s.Device, Representor: s.Representor, Role: s.Role}
		on, err := openSide(s.Driver, chosen, log)
		if err != nil {
			return err
		}
		defer on.end(&err)
		return copyOnDevice(ctx, on, output.NewMonitor(r, s.Asked()), streams, s, log)
	})
}

// reported carries out one copy or several, within --timeout, and reports on them. refused is why the settings are
// refused, or nil.
func reported(
	ctx context.Context, streams streams, s config.Copy, refused error, uses streamUses, log zerolog.Logger,
	run func(context.Context, output.Reporter) error,
) error {
	r := output.New(streams.stdout, streams.stderr, streams.screen, s.Form, s.IsStream(), log)
	err := cmp.Or(refused, streams.closed.check(s, uses))
	if err == nil {
		err = withCPUProfile(s.CPUProfile, func() error {
			ctx, cancel := limitTime(ctx, s.Timeout)
			defer cancel()
			return run(ctx, r)
		})
	}
	return ended(r, log, err)
}

// copyOnDevice carries out the copy on a device.
func copyOnDevice(
	ctx context.Context, on *side, r *output.Monitor, streams streams, s config.Copy, log zerolog.Logger,
) error {
	if on.movesNothing() {
		return errMovesNothing
	}
	options := copyOptions(s, on.device, on.side, streams.data, log)
	options.Location = native.Location{Machine: machineName(), User: userName(), Path: pathForPeers(s.File)}
	if s.With != "" {
		options.Word = native.WordOf(s.With)
	}
	_, err := selectEntries(ctx, s, streams.stdin, &options)
	if err == nil {
		err = placement.Apply(placement.ThisMachine, on.near(), s.Placement, log)
	}
	if err != nil {
		dmaxfer.TellPeer(ctx, options, err)
		return err
	}
	path := on.path(s.Driver)
	path.File = s.File
	path.Wait = output.WaitForPeer(on.side, on.hostFunction(s.Representor), s.File, s.With, s.Wait)
	r.Begin(path)
	return r.Conclude(transfer(ctx, r, options, dmaxfer.Run))
}

// pathForPeers returns the absolute path of a file, empty for a stream.
func pathForPeers(file string) string {
	path, err := filepath.Abs(file)
	if err != nil || file == option.Stream {
		return ""
	}
	return path
}

// transfer makes the copy, within --max-duration, and lets the monitor sample its progress.
func transfer(
	ctx context.Context, r *output.Monitor, o dmaxfer.Options,
	run func(context.Context, dmaxfer.Options) (job.Summary, error),
) (job.Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.Progress = &r.Progress
	o.Notify = func(e job.Event) {
		if _, met := e.(job.PeerKnown); met {
			startLimit(ctx, cancel, o.MaxDuration)
		}
		r.Event(e)
	}
	stop := r.Watch(progressRequests(ctx))
	defer stop()
	return run(ctx, o)
}

// startLimit cancels the copy after limit; 0 is no limit.
func startLimit(ctx context.Context, cancel context.CancelCauseFunc, limit time.Duration) {
	if limit == 0 {
		return
	}
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w after %s", errDurationLimit, limit)) })
	context.AfterFunc(ctx, func() { timer.Stop() })
}

var pathChoices = map[config.PathChoice]job.PathChoice{
	config.PathAuto: job.AnyPath, config.PathDMA: job.OnlyDMA, config.PathFast: job.OnlyFast,
	config.PathTLS: job.OnlyTLS, config.PathMessages: job.OnlyMessages, config.PathRMA: job.OnlyRMA,
	config.PathTCP: job.OnlyTCP,
}

func copyOptions(
	s config.Copy, device *doca.Device, side wire.Side, data dataStreams, log zerolog.Logger,
) dmaxfer.Options {
	o := s.Options
	o.Side, o.Device, o.Representor, o.File, o.Path = side, device, s.Representor, s.File, pathChoices[s.Path]
	o.Wait, o.IdleTimeout, o.DryRun, o.Placement = s.Wait, s.IdleTimeout, s.DryRun, placement.Lanes{}
	o.Stdin, o.Stdout, o.Software, o.ExitCode, o.Log = data.stdin, data.stdout, softwareName(), output.ExitCode, log
	return o
}

// withCPUProfile runs work and writes its CPU profile to a file. If path is empty it only runs work.
func withCPUProfile(path string, work func() error) error {
	if path == "" {
		return work()
	}
	file, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		return &job.Error{
			Kind:  job.ErrTarget,
			Cause: fmt.Sprintf("cannot write the profile %s: %s", quote.Bare(path), disk.Reason(err)),
			Next:  "name another file with --cpuprofile",
		}
	}
	err = work()
	pprof.StopCPUProfile()
	if closeErr := file.Close(); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("write the profile: %w", closeErr))
	}
	return err
}
