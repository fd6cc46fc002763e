package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/release"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
)

// Command returns the command bench.
func Command() root.Command {
	var s Settings
	return root.Command{
		Name:    "bench",
		Summary: "Measure, and recommend settings for a card",
		Takes:   []string{"[PEER]"},
		About: `Copies from memory to memory, in both directions, as a copy of files does but
without reading, digests and storing, and prints the throughput for each chunk,
depth and number of lanes, by DMA and over producers and consumers. It ends
with the cheapest settings within 5 % of the best compromise between the two
directions, as flags and for a parameter file. Figures of the software device
mean nothing for a card.

Without PEER, run it on both sides, as a copy; nobody is authenticated. The
host measures and prints, with its own flags; the DPU serves it. With PEER, a
daemon (dma-copy serve) is the other side, within its limits, and the key must
be allowed to copy. PEER is as for ping.
`,
		Examples: `host$ dma-copy bench -p b1:00.1
dpu$  dma-copy bench -p 03:00.1 -r b1:00.1
host$ dma-copy bench : --path dma --chunks 1MiB,2MiB
`,
		Complete: contact.CompletePeer,
		Settings: &s,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			err := s.SetPeer(args)
			if err == nil {
				err = runBench(ctx, streams, s, log)
			}
			report.LogReworded(log, err)
			return err
		},
	}
}

func runBench(ctx context.Context, streams root.Streams, s Settings, log zerolog.Logger) error {
	ctx, cancel := root.LimitTime(ctx, s.Timeout)
	defer cancel()
	b := &benchRun{settings: s, streams: streams, log: log}
	if s.Daemon {
		return report.InRequest(measurement, b.measureDaemon(ctx))
	}
	return report.InRequest(measurement, b.measureTogether(ctx))
}

// measureDaemon measures with a daemon.
func (b *benchRun) measureDaemon(ctx context.Context) (err error) {
	s := b.settings
	ctx, c, err := contact.Connect(ctx, b.streams, contact.Reach{
		Contact: s.Contact, Reach: s.Reach, Daemon: s.Remote, Validate: s.ValidateFor,
		Waits: root.WaitOutput(b.streams, s.Output, s.Quiet, b.log),
	}, b.log)
	if err != nil {
		return err
	}
	defer c.End(&err)
	return b.measure(ctx, c)
}

// measureTogether measures on the host, and serves the measurements on the DPU.
func (b *benchRun) measureTogether(ctx context.Context) (err error) {
	s := b.settings
	on, err := device.Meet(ctx, s.Reach, "dma-copy bench", root.WaitOutput(b.streams, s.Output, s.Quiet, b.log), b.log)
	if err != nil {
		return err
	}
	defer on.End(&err)
	meeting := service.Meeting{
		Device: on.Device, Side: on.Side.Is, Representor: s.Representor, Wait: s.Wait,
		Name: protocol.BenchServerName, Met: on.Met,
	}
	if on.Side.Is == wire.DPU {
		return b.serve(ctx, on.Side, meeting)
	}
	return b.call(ctx, on.Side, meeting)
}

// measurement is what errors of the connection call what bench does.
const measurement = "measurement"

// benchRun is one run of bench.
type benchRun struct {
	settings Settings
	streams  root.Streams
	log      zerolog.Logger
	report   *Report
	limit    error // that a case has reached
}

// call measures, on the host, with a bench on the DPU.
func (b *benchRun) call(ctx context.Context, on *connect.Side, m service.Meeting) error {
	client, err := service.Dial(ctx, m, service.ClientConfig{
		Verify: secure.AnyKey, Anonymous: true, Software: release.SoftwareName(), Name: connect.MachineName(),
		User:        connect.UserName(),
		IdleTimeout: b.settings.IdleTimeout, Log: b.log,
	})
	m.Met()
	if err != nil {
		return err
	}
	err = b.measure(ctx, &connect.Conn{Side: on, Client: client, Path: on.Path(b.settings.Driver.Options())})
	if err == nil {
		_, err = client.Text(ctx, benchDone)
	}
	return errors.Join(err, connect.CloseUnlessHung(err, client.Close))
}

// benchDone is the text of the ping that ends a bench on the host, if the host has its results.
const benchDone = "done"

// benchEnd is the Observer of a bench on the DPU.
type benchEnd struct {
	service.Observers
	done bool
}

// Ended implements service.Observer. There is one connection.
func (e *benchEnd) Ended(r service.Record) { e.done = e.done || r.Text == benchDone }

// serve is the other side of a bench on the host.
func (b *benchRun) serve(ctx context.Context, on *connect.Side, m service.Meeting) (err error) {
	key, err := identity.Generate()
	if err != nil {
		return err
	}
	var end benchEnd
	c := service.ServerConfig{
		Key: key, AuthNone: true, Observer: &end, MeasuresOnly: true, Name: connect.MachineName(),
		User: connect.UserName(), Log: b.log,
		Limits: service.Limits{IdleTimeout: b.settings.IdleTimeout}, Copy: b.options(on.Is),
	}
	c.Copy.Lanes = copying.MostLanes
	server, err := service.NewServer(c)
	if err == nil {
		err = server.ServeOne(ctx, m)
	}
	if err == nil && !end.done {
		err = comch.ErrPeerLost
	}
	if err != nil {
		return err
	}
	b.report = b.newReport(on, on.Path(b.settings.Driver.Options()))
	return b.print("the host has the results\n")
}

// print prints the report, or its text unless the run is quiet.
func (b *benchRun) print(text string) error {
	if b.settings.Quiet {
		text = ""
	}
	return output.Print(b.streams.Stdout, b.settings.Output, "results", b.report, text)
}

// newReport returns a report without results.
func (b *benchRun) newReport(on *connect.Side, path report.Path) *Report {
	return &Report{
		Version: 1, Software: release.SoftwareName(), Side: report.RoleOf(on.Is), Driver: path.Driver,
		Hardware: path.Hardware, Results: []Result{}, Skipped: []Skipped{},
	}
}

// measure measures everything, and reports it.
func (b *benchRun) measure(ctx context.Context, c *connect.Conn) error {
	b.report = b.newReport(c.Side, c.Path)
	b.report.Peer = c.Client.Peer().Software
	if err := b.roundTrips(ctx, c); err != nil {
		return err
	}
	if err := b.copies(ctx, c); err != nil {
		return err
	}
	b.report.Recommended = Recommend(b.report.Results)
	return b.print(b.report.Text())
}

// roundTrips measures those over the control channel.
func (b *benchRun) roundTrips(ctx context.Context, c *connect.Conn) error {
	times := make([]time.Duration, 200)
	for i := range times {
		var err error
		if times[i], err = c.Client.RoundTrip(ctx, make([]byte, 64)); err != nil {
			return err
		}
	}
	s := ping.Summarize(times)
	b.report.Control = &RoundTrips{
		Count: s.Count, Min: s.Min.Seconds(), Median: s.Median.Seconds(), P99: s.P99.Seconds(),
	}
	return nil
}

// copies measures the copies from memory to memory.
func (b *benchRun) copies(ctx context.Context, c *connect.Conn) error {
	s := b.settings
	paths := []wire.Path{
		wire.PathDMA, wire.PathFast, wire.PathTLS, wire.PathTCP, wire.PathMessages,
		wire.PathRMA,
	}
	switch auto := s.Path == device.PathAuto; {
	case auto && c.Device == nil:
		paths = paths[2:3]
	case auto:
		paths = paths[:2]
	default:
		paths = slices.DeleteFunc(paths, func(p wire.Path) bool { return !copying.PathChoices[s.Path].Permits(p) })
	}
	plan := Plan{
		Chunks: s.Chunks, Depths: s.Depths, Lanes: s.Lanes, Window: service.MostMeasured, Each: s.Each,
	}
	var unavailable error
	for _, path := range paths {
		for _, direction := range []protocol.CopyDirection{protocol.CopyPush, protocol.CopyPull} {
			from := c.Side.Is
			if direction == protocol.CopyPull {
				from = from.Other()
			}
			results, err := plan.Run(ctx, report.RoleOf(from), path.String(), b.measurer(c, path, direction))
			if skipped, is := errors.AsType[*Unavailable](err); is {
				unavailable = b.skip(c, report.RoleOf(from), path, "", skipped.Err)
			} else if err != nil {
				return err
			}
			b.report.Results = append(b.report.Results, results...)
			if s.Output == option.OutputText && !s.Quiet && len(results) > 0 {
				WriteTable(b.streams.Stdout, results)
			}
		}
	}
	if len(b.report.Results) > 0 {
		return nil
	}
	return cmp.Or(unavailable, b.limit, exit.Usagef("no chunk of --chunks fits %d bytes in flight with one of "+
		"--depths and --lane-counts: choose smaller ones", service.MostMeasured))
}

// skip notes why a path, or the cases of it that prefix names, are not measured, and returns that.
func (b *benchRun) skip(c *connect.Conn, from string, path wire.Path, prefix string, why error) error {
	b.report.Skipped = append(b.report.Skipped, Skipped{
		From: from, Path: path.String(), Reason: prefix + report.Sentence(report.WithSide(c.Side.Is, why)),
	})
	return why
}

// measurer returns what makes the measurements on a path in a direction.
func (b *benchRun) measurer(c *connect.Conn, path wire.Path, direction protocol.CopyDirection) Measurer {
	return func(ctx context.Context, of Case, bytes int64) (Measured, error) {
		summary, err := c.Client.Measure(ctx, protocol.MeasureRequest{
			Direction: direction, Path: path, Lanes: uint8(of.Lanes), Chunk: uint32(of.Chunk), Depth: uint32(of.Depth),
			Size: uint64(bytes),
		}, b.options(c.Side.Is))
		refused, isRefused := errors.AsType[*protocol.Refusal](err)
		lacking := errors.Is(err, job.ErrCapability) || errors.Is(err, wire.ErrNoPath)
		switch {
		case err != nil && ctx.Err() == nil && exit.Code(err) == exit.Limit:
			cases := fmt.Sprintf("%s x %d, lanes %d: ", quantity.Bytes(uint64(of.Chunk)), of.Depth, of.Lanes)
			b.limit = b.skip(c, of.From, path, cases, err)
			err = ErrSkipped
		case lacking || isRefused && !refused.Final:
			err = &Unavailable{Err: err}
		}
		return Measured{Chunk: summary.Chunk, Depth: summary.Depth, Elapsed: summary.Elapsed}, err
	}
}

// options returns the options of every copy.
func (b *benchRun) options(of wire.Side) dmaxfer.Options {
	o := dmaxfer.Options{Path: copying.PathChoices[b.settings.Path]}
	o.Side, o.Placement, o.Software = of, placement.Lanes{}, release.SoftwareName()
	o.IdleTimeout, o.Log = b.settings.IdleTimeout, b.log
	return o
}
