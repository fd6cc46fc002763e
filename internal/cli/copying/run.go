// Package copying is what the commands that copy share: their settings and options, which entries they send, and how a
// transfer is run, limited and reported.
package copying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/release"
	"github.com/dma-copy/dma-copy/internal/report"
)

// Refused returns the command.refused of a command that copies. With -o json it writes the error as an event.
func Refused(s *Settings) func(root.Streams, error) error {
	return func(streams root.Streams, err error) error {
		root.IgnoreSIGPIPE()
		if s.Output == option.OutputJSON {
			output.New(streams.Stdout, streams.Stderr, streams.Screen, s.Form, s.IsStream(), zerolog.Nop()).Fail(err)
		}
		return err
	}
}

// Run carries out one copy or several, within --timeout, and reports on them. refused is why the settings are
// refused, or nil.
func Run(
	ctx context.Context, streams root.Streams, s Settings, refused error, uses StreamUses, log zerolog.Logger,
	run func(context.Context, report.Reporter) error,
) error {
	r := output.New(streams.Stdout, streams.Stderr, streams.Screen, s.Form, s.IsStream(), log)
	err := cmp.Or(refused, CheckStreams(streams.Closed, s, uses))
	if err == nil {
		err = WithCPUProfile(s.CPUProfile, func() error {
			ctx, cancel := root.LimitTime(ctx, s.Timeout)
			defer cancel()
			return run(ctx, r)
		})
	}
	return output.Ended(r, log, err)
}

// PathChoices are the choices of --path as a transfer knows them.
var PathChoices = map[device.Path]job.PathChoice{
	device.PathAuto: job.AnyPath, device.PathDMA: job.OnlyDMA, device.PathFast: job.OnlyFast,
	device.PathTLS: job.OnlyTLS, device.PathMessages: job.OnlyMessages, device.PathRMA: job.OnlyRMA,
	device.PathTCP: job.OnlyTCP,
}

// Options returns the options of a transfer by the settings of a copy.
func Options(
	s Settings, device *doca.Device, side wire.Side, data root.DataStreams, log zerolog.Logger,
) dmaxfer.Options {
	o := s.Options
	o.Side, o.Device, o.Representor, o.File, o.Path = side, device, s.Representor, s.File, PathChoices[s.Path]
	o.Wait, o.IdleTimeout, o.DryRun, o.Placement = s.Wait, s.IdleTimeout, s.DryRun, placement.Lanes{}
	o.Stdin, o.Stdout, o.Software, o.Log = data.Stdin, data.Stdout, release.SoftwareName(), log
	return o
}

// WithCPUProfile runs work and writes its CPU profile to a file. If path is empty it only runs work.
func WithCPUProfile(path string, work func() error) error {
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

// StreamUses names, by descriptor, the argument that stands for a stream instead of a file; empty: none does.
type StreamUses [len(root.StreamNames)]string

// OneStream returns the uses of an argument, which may be empty, that stands for the input or the output.
func OneStream(argument string, input bool) (uses StreamUses) {
	fd := 1
	if input {
		fd = 0
	}
	uses[fd] = argument
	return uses
}

// CheckStreams refuses settings that need a stream which is closed.
func CheckStreams(c root.ClosedStreams, s Settings, uses StreamUses) error {
	for _, use := range []struct {
		argument string
		fd       int
		given    bool
	}{
		{uses[0], 0, uses[0] != ""}, {uses[1], 1, uses[1] != ""}, {uses[2], 2, uses[2] != ""},
		{"--files-from -", 0, s.FilesFrom == option.Stream}, {"-o json", 1, s.Output == option.OutputJSON},
		{"--dry-run", 1, s.DryRun},
	} {
		if use.given && c[use.fd] {
			return exit.Usagef("%s uses %s, and it is closed: connect it, for example to /dev/null", use.argument,
				root.StreamNames[use.fd])
		}
	}
	return nil
}
