// Package local copies within this machine by the DMA engine.
package local

import (
	"context"
	"os"
	"slices"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/operations"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
)

// Settings holds the settings of local: the copy settings that it has, with the source as File. All others are zero.
type Settings struct {
	copying.Settings
	Target string // where the copy lands; Stream for stdout; never empty after SetPaths
}

// Table implements Settings. A local copy has no other side, and names what it copies in its arguments.
func (s *Settings) Table() []option.Option {
	return slices.Concat(device.GeneralOptions(&s.Logging, &s.Driver), s.EngineOptions(), s.DemandOptions(),
		s.CommandOptions(copying.OneCommand), s.ExistingOptions(copying.OneCommand),
		[]option.Option{copying.MakePathOption(&s.Options.MakePath)})
}

// SetPaths sets source and target from the arguments of the command.
func (s *Settings) SetPaths(args []string) error {
	names, fields := [...]string{"SRC", "DST"}, [...]*string{&s.File, &s.Target}
	for i, name := range names {
		if i >= len(args) {
			return exit.Usagef("%s is missing: dma-copy local takes SRC and DST, what to copy and the copy", name)
		}
		path, err := option.ParseFile(args[i])
		if err != nil {
			return exit.Usagef("%s %s: %w", name, quote.Text(args[i]), err)
		}
		*fields[i] = path
	}
	if len(args) > len(names) {
		return exit.Usagef("unexpected argument %s: dma-copy local takes SRC and DST", quote.Text(args[len(names)]))
	}
	if err := operations.CheckTarget(s.Target, s.Target, s.File, false); err != nil {
		return err
	}
	s.Target = operations.Landing(s.File, s.Target)
	return nil
}

// Validate checks the settings of a local copy against each other.
func (s Settings) Validate() error {
	if s.File == option.Stream && s.Target == option.Stream {
		return exit.Usagef("SRC and DST are both -: name a file as one of them")
	}
	return s.ValidateCommon(s.StreamArgument())
}

// StreamArgument returns the argument that stands for a standard stream, or nothing.
func (s Settings) StreamArgument() string {
	switch option.Stream {
	case s.File:
		return "SRC -"
	case s.Target:
		return "DST -"
	}
	return ""
}

// Command returns the command local.
func Command() root.Command {
	var s Settings
	return root.Command{
		Name:    "local",
		Summary: "Copy within this machine by the DMA engine",
		Takes:   []string{"SRC DST"},
		About: `Copies a file or a directory within this machine, in one process: the DMA
engine of a host function or of the DPU moves the bytes instead of the CPU. All
else is as in a copy between two sides: what is written is verified and durable,
gets its name when it is complete, and is resumed after an interruption.

A DST that ends with /, or is . or .., is a directory to copy into: SRC keeps
its name there, a directory too. Any other DST is the name of the copy itself.
SRC/. is the content of SRC. Entries that DST lacks are added, and others that
differ are replaced with --overwrite only. - is stdin or stdout.

The software device moves the bytes with the CPU, and is slower than cp.
`,
		Examples: `host$ dma-copy local -p b1:00.1 photos /srv/photos
host$ dma-copy local --overwrite --backup image.bin /srv/image.bin
`,
		Complete: root.AnyFiles,
		Settings: &s,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			root.IgnoreSIGPIPE()
			return localCopy(ctx, streams, s, args, log)
		},
		Refused: copying.Refused(&s.Settings),
	}
}

// localCopy carries out a local copy and reports on it. Where DST is stdout, the events of -o json go to stderr.
func localCopy(ctx context.Context, streams root.Streams, s Settings, args []string, log zerolog.Logger) error {
	refused := s.SetPaths(args)
	if refused == nil {
		refused = s.Validate()
	}
	if s.Target == option.Stream {
		streams.Stdout = streams.Stderr
	}
	uses := copying.OneStream(s.StreamArgument(), s.Target != option.Stream)
	return copying.Run(ctx, streams, s.Settings, refused, uses, log, func(ctx context.Context,
		r report.Reporter) (err error) {
		driver, err := connect.OpenDriver(s.Driver.Options(), log)
		if err != nil {
			return err
		}
		on := &connect.Side{Driver: driver}
		defer on.End(&err)
		if on.MovesNothing() {
			return connect.ErrMovesNothing
		}
		on.Device, err = connect.OpenDevice(driver, func(devices []doca.DeviceInfo) (string, error) {
			return inventory.ChooseLocal(devices, s.Device)
		})
		if err != nil {
			return err
		}
		return localOnDevice(ctx, on, report.NewMonitor(r, s.Asked()), streams, s, log)
	})
}

// localOnDevice carries out the copy on a device, which does the part of either side.
func localOnDevice(
	ctx context.Context, on *connect.Side, r *report.Monitor, streams root.Streams, s Settings, log zerolog.Logger,
) error {
	options := copying.Options(s.Settings, on.Device, wire.Host, streams.Local, log)
	copying.PreserveAsUser(&options, os.Geteuid(), log)
	if _, err := copying.Select(ctx, s.Settings, streams.Stdin, &options); err != nil {
		return err
	}
	if err := placement.Apply(placement.ThisMachine, on.Near(), s.Placement, log); err != nil {
		return err
	}
	path := on.Path(s.Driver.Options())
	path.Local, path.File, path.Target = true, s.File, s.Target
	r.Begin(path)
	copyHere := func(ctx context.Context, o dmaxfer.Options) (job.Summary, error) {
		return dmaxfer.RunLocal(ctx, o, s.Target)
	}
	return r.Conclude(operations.Transfer(ctx, r, root.ProgressRequests(ctx), options, copyHere))
}
