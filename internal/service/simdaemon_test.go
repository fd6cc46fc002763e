//go:build cgo

package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

// simDaemon is the process of a daemon in a simulation.
type simDaemon struct {
	*simulation
	server  *Server
	ctx     context.Context // of Serve
	stop    context.CancelFunc
	serving sync.WaitGroup
	audit   *auditor

	dead     atomic.Bool // after a loss of power nothing more reaches the disk
	draining atomic.Bool
	files    atomic.Int64 // operations on the files of the scenario's diskFault
}

// errPowerLost is what a daemon gets of its disk when there is no more power.
var errPowerLost = syscall.EIO

// startDaemon is to be called in the bubble.
func (s *simulation) startDaemon() *simDaemon {
	d := &simDaemon{simulation: s, audit: newAuditor()}
	config := ServerConfig{
		Key: s.key, Trust: s.grants(-1), FS: disktest.NewFaulty(s.disk, d.plan), Name: "dpu7", Text: "hello",
		Limits: s.limits, Shares: s.shares(), Observer: d.audit, Log: zerolog.Nop(),
		Copy: dmaxfer.Options{
			Options: role.Options{
				Chunk: 4096, Depth: 4, Digest: digest.CRC32C, Durability: wire.DurabilityFull,
				Software: "simulation", Log: zerolog.Nop(),
			},
			Path: job.OnlyDMA,
		},
	}
	var err error
	d.server, err = NewServer(config)
	must(s.T, err)
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// end ends the daemon when all its connections have ended, and checks that it has kept nothing.
func (d *simDaemon) end() {
	d.serving.Wait()
	d.stop()
	status := d.server.Status()
	if len(status.Connections) != 0 || status.Running != 0 || status.Waiting != 0 || status.Memory != 0 ||
		status.Pending != 0 || status.Totals.Bugs != 0 {
		d.Errorf("the daemon ends with %+v", status)
	}
	d.server.mu.Lock()
	if len(d.server.limiters) != 0 || len(d.server.entering) != 0 {
		d.Errorf("the daemon keeps %d limiters and %d connections", len(d.server.limiters), len(d.server.entering))
	}
	d.server.mu.Unlock()
	d.audit.check(d)
}

// plan makes the disk slow, and fail or hang where the scenario says so.
func (d *simDaemon) plan(_ int, op, name string) *disktest.Fault {
	if d.dead.Load() {
		return &disktest.Fault{Err: errPowerLost}
	}
	f := d.diskFault
	if f.tenant >= 0 && !d.over.Load() && strings.Contains(name, fileOf(f.tenant, "")) && d.files.Add(1) == f.at {
		d.clients[f.tenant].disturbed.Store(true)
		if f.hang == 0 {
			return &disktest.Fault{Err: f.err, Done: f.done}
		}
		return &disktest.Fault{Hang: after(f.hang)}
	}
	if d.diskDelay > 0 && slices.Contains(slowOperations, op) {
		return &disktest.Fault{Hang: after(time.Duration(d.below(int(d.diskDelay))))}
	}
	return nil
}

var slowOperations = []string{"read", "write", "sync", "syncfs", "rename", "name", "create", "mkdir", "remove"}

func after(d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	time.AfterFunc(d, func() { close(over) })
	return over
}

// losePower ends the daemon at once. Its disk is then one of the states that this can leave.
func (d *simDaemon) losePower() {
	d.dead.Store(true)
	d.disturbAll()
	d.disk = d.disk.PowerLoss(d.below)
	for _, c := range d.clients {
		c.powerLost()
	}
	d.stop()
}

// drain lets running requests go on for a while.
func (d *simDaemon) drain() {
	d.draining.Store(true)
	d.disturbAll()
	ctx, cancel := context.WithTimeoutCause(context.Background(), d.grace, errStopped)
	defer cancel()
	d.server.Drain(ctx)
	if len(d.server.Status().Connections) != 0 {
		d.Errorf("there are connections after the drain: %+v", d.server.Status())
	}
}

// droppedShare is the one that is gone after a reload.
const droppedShare = "keep"

// reload takes away one client's key and a share, and opens the others again.
func (d *simDaemon) reload() {
	affected := d.clientsOf(d.clients[d.revoking].key)
	for _, c := range affected {
		c.disturbed.Store(true)
	}
	d.revoked.Store(true)
	left := slices.DeleteFunc(d.shares(), func(s share.Share) bool { return s.Name == droppedShare })
	d.server.ReloadKeys(d.grants(d.revoking))
	must(d.T, d.server.ReloadShares(left))
	d.droppedAt.Store(time.Now().UnixNano())
	for _, c := range affected {
		c.revokedAt.Store(time.Now().UnixNano())
	}
}

// shares are "p0" and so on, each of one client only, and shares of all.
func (s *simulation) shares() []share.Share {
	all := []share.Share{
		{Name: "common", Path: "/srv/common", Access: share.ReadWrite},
		{Name: "in", Path: "/srv/in", Access: share.Write},
		{Name: "out", Path: "/srv/out", Access: share.Read},
		{Name: "keep", Path: "/srv/keep", Access: share.ReadWrite, NoOverwrite: true},
		{Name: "hidden", Path: "/srv/hidden", Access: share.ReadWrite},
	}
	for i := range s.clients {
		all = append(all, share.Share{Name: privateShare(i), Path: "/srv/" + privateShare(i), Access: share.ReadWrite})
	}
	return all
}

func privateShare(client int) string { return fmt.Sprintf("p%d", client) }

// errSimInterrupted is what Ctrl-C is here.
var errSimInterrupted = error(exit.Interrupted{Signal: syscall.SIGINT})
