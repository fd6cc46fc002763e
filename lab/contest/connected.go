package contest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/doca"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// connectedBench measures copies by clients in this process, which stay connected to daemons.
type connectedBench struct {
	Plan
	config    *pairConfig
	workspace *workspace
	links     []*link
	tools     []Tool
}

// measureConnected measures all sizes, a tree of small files, and several clients at once.
func (p Plan) measureConnected(ctx context.Context, m *pairConfig) (record *ConnectedRecord, err error) {
	w, err := newWorkspace(p.Connected.directory())
	if err != nil {
		return nil, err
	}
	defer w.close()
	for _, needed := range p.Connected.spaces() {
		if err := w.checkSpace(needed); err != nil {
			return nil, err
		}
	}
	driver, _, err := p.OpenDriver(m.runtime)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	b := &connectedBench{Plan: p, config: m, workspace: w}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.connect(ctx, driver); err != nil {
		return nil, err
	}
	record = &ConnectedRecord{CopySetup: p.newSetup(ctx, w, p.Connected.CopySettings, connectedTools)}
	b.tools = record.Tools
	return record, b.measure(ctx, record)
}

// spaces returns what each of the groups takes.
func (p *ConnectedPlan) spaces() []space {
	largest := slices.Max(p.Sizes)
	trees := &TreePlan{Files: p.Files, CopySettings: p.CopySettings}
	tree := trees.space(filetree.Small)
	tree.bytes *= int64(len(p.Daemons)) // each variant with each daemon keeps a target
	tree.inodes *= int64(len(p.Daemons))
	work := clientWork{size: slices.Min(p.Sizes), copies: p.copies()}
	return []space{
		{
			what: fmt.Sprintf("a file of %s and its copy", bench.SizeText(largest)), bytes: 2 * largest, inodes: 2,
			next: "smaller files with --sizes",
		},
		tree,
		{
			what:   fmt.Sprintf("%d copies of a file of %s", work.copies, bench.SizeText(work.size)),
			bytes:  work.bytes() + work.size,
			inodes: int64(work.copies) + 1, next: "fewer clients with --clients",
		},
	}
}

// connect starts the daemons, and connects to each.
func (b *connectedBench) connect(ctx context.Context, driver *doca.Driver) error {
	for _, side := range b.Connected.Daemons {
		name := b.config.sides.Host
		if side == DaemonOnHost {
			name = b.config.sides.DPU
		}
		device, err := driver.OpenDevice(name)
		if err != nil {
			return err
		}
		l := &link{
			workspace: b.workspace, placement: b.Connected.Placement, software: b.Software, device: device,
		}
		b.links = append(b.links, l)
		if l.daemon, err = b.config.startDaemon(ctx, b.workspace, side, device); err != nil {
			return err
		}
		if l.client, err = l.daemon.connect(ctx, b.Software); err != nil {
			return fmt.Errorf("connecting to the daemon on the %s: %w", side, err)
		}
	}
	return nil
}

func (b *connectedBench) close() error {
	var err error
	for _, l := range b.links {
		err = errors.Join(err, l.close())
	}
	return err
}

func (b *connectedBench) measure(ctx context.Context, r *ConnectedRecord) error {
	for _, size := range b.Connected.Sizes {
		results, err := b.measureSize(ctx, size)
		if err != nil {
			return err
		}
		r.Results = append(r.Results, results...)
	}
	if err := b.measureTree(ctx, r); err != nil {
		return err
	}
	var err error
	r.Clients, err = b.measureClients(ctx)
	return err
}

// measureSize measures one group: all candidates copy the same file, interleaved.
func (b *connectedBench) measureSize(ctx context.Context, size int64) ([]CopyResult, error) {
	if err := b.workspace.makeSource(ctx, size); err != nil {
		return nil, err
	}
	t := fileTask{b.workspace.newConditions(size)}
	entries := t.toolEntries(b.tools, b.Connected.Durability)
	for _, l := range b.links {
		for _, v := range b.Connected.variants() {
			result := v.result(size)
			result.Daemon = l.daemon.side
			entries = append(entries, copyEntry{l.newCopy(t, v, b.workspace.target(), false), result})
		}
	}
	outcomes, err := b.measureGroup(ctx, "copies of "+bench.SizeText(size), entries)
	if err != nil {
		return nil, err
	}
	results := conclude(entries, outcomes, t.memoryTouched)
	setRatios(results)
	return results, nil
}

// measureTree measures a tree of small files.
func (b *connectedBench) measureTree(ctx context.Context, r *ConnectedRecord) error {
	tree := filetree.New(filetree.Small, b.Connected.Files)
	b.notify("tree %s: %s, %s", filetree.Small, quantity.Count(tree.Files, "file"), bench.SizeText(tree.Bytes))
	g, err := b.workspace.newTreeGroup(ctx, filetree.Small, tree, b.Connected.Durability)
	if err != nil {
		return err
	}
	g.addTools(b.tools)
	for _, l := range b.links {
		for _, v := range b.Connected.variants() {
			result := v.result(tree.Bytes)
			result.Daemon = l.daemon.side
			g.addOwn(result,
				func(t task, target string) copyCandidate { return l.newCopy(t, v, target, false) },
				func(t task, target string) copyCandidate { return l.newCopy(t, v, target, true) })
		}
	}
	if r.Trees, err = b.measureTreeGroup(ctx, g); err != nil {
		return err
	}
	r.Shapes = []TreeShape{shapeOf(filetree.Small, tree)}
	return nil
}

// link is a connection to a daemon, and what belongs to it.
type link struct {
	workspace *workspace
	placement role.Placement
	software  string
	device    *doca.Device // of this process; nil: a network connection
	daemon    *daemon
	client    *service.Client
}

func (l *link) close() error {
	var err error
	if l.client != nil {
		err = l.client.Close()
	}
	if l.daemon != nil {
		err = errors.Join(err, l.daemon.stop())
	}
	if l.device != nil {
		err = errors.Join(err, l.device.Close())
	}
	return err
}

// pushes reports whether a copy in that direction goes to the daemon.
func (l *link) pushes(d bench.Direction) bool {
	if d == Push || d == Pull {
		return d == Push
	}
	return (l.daemon.side == DaemonOnDPU) == (d == bench.HostToDPU)
}

// linkedCopy is the candidate that copies over a connection.
type linkedCopy struct {
	task
	variant
	*link
	target    string
	overwrite bool

	summary job.Summary
}

func (l *link) newCopy(t task, v variant, target string, overwrite bool) *linkedCopy {
	return &linkedCopy{task: t, variant: v, link: l, target: target, overwrite: overwrite}
}

// Prepare also copies a file of one byte, so that the copy that is measured follows one of its kind, with a window that
// both sides have.
func (c *linkedCopy) Prepare(ctx context.Context) error {
	if err := c.task.Prepare(ctx); err != nil {
		return err
	}
	return c.warmUp(ctx, c.client, c.variant)
}

// warmUp copies a file of one byte.
func (l *link) warmUp(ctx context.Context, client *service.Client, v variant) error {
	source, target := disk.Join(l.workspace.folder, "first"), disk.Join(l.workspace.folder, "second")
	if err := os.WriteFile(source, []byte{1}, 0o600); err != nil {
		return err
	}
	if _, err := l.copy(ctx, client, v, source, target, true); err != nil {
		return fmt.Errorf("a copy of one byte: %w", err)
	}
	return nil
}

func (c *linkedCopy) Run(ctx context.Context) (bench.Run, error) {
	run, err := c.daemon.timed(func() (err error) {
		c.summary, err = c.copy(ctx, c.client, c.variant, c.link.workspace.source(), c.target, c.overwrite)
		return err
	})
	run.Copy = c.summary.Elapsed.Seconds()
	return run, err
}

// copy makes a copy between two names in the workspace, one of which the daemon uses.
func (l *link) copy(
	ctx context.Context, client *service.Client, v variant, source, target string, overwrite bool,
) (job.Summary, error) {
	options, err := l.options(v)
	if err != nil {
		return job.Summary{}, err
	}
	options.Overwrite = overwrite
	remote, call := source, client.Pull
	options.File = target
	if l.pushes(v.direction) {
		remote, call = target, client.Push
		options.File = source
	}
	place := protocol.Place{Share: shareName, Path: strings.TrimPrefix(remote, l.workspace.folder+"/")}
	return call(ctx, service.CopyRequest{Options: options, Place: place})
}

func (l *link) options(v variant) (dmaxfer.Options, error) {
	algorithm, err := digest.ParseAlgorithm(v.digest)
	if err != nil {
		return dmaxfer.Options{}, err
	}
	return dmaxfer.Options{
		Options: role.Options{
			Side: l.daemon.meeting.Side, Chunk: v.chunk, Depth: v.depth, Digest: algorithm,
			Durability: durabilities[v.durability], Placement: l.placement, IdleTimeout: 30 * time.Second,
			Software: l.software, Log: zerolog.Nop(),
		},
		Device: l.device, Path: pathChoices[v.path],
	}, nil
}

// durabilities are the values of --durability.
var durabilities = map[string]wire.Durability{
	wire.DurabilityNone.String(): wire.DurabilityNone,
	wire.DurabilityFile.String(): wire.DurabilityFile,
	wire.DurabilityFull.String(): wire.DurabilityFull,
}

// commands returns that of the daemon: the copies are requests of this process.
func (c *linkedCopy) commands() [][]string { return [][]string{c.daemon.argv} }

func (c *linkedCopy) negotiated() (chunk int64, depth int) { return c.summary.Chunk, c.summary.Depth }
