package network

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// memory is the window.Memory of a network connection, common to its data paths.
type memory struct {
	permitted job.Paths // 0: tls, or the path that the user names
	paths     map[wire.Path]dataPath
	failed    error // why there is none
}

var _ window.Buffering = (*memory)(nil)

// dataPath makes the windows of one data path of a network connection. Its methods are called like the methods of
// window.Memory.
type dataPath interface {
	// Usable returns why this machine cannot use the path, or nil.
	Usable() error

	Traits() window.Traits
	Overhead(l window.Layout, peer native.Window) int64 // of window.Buffering
	Expose(ctx context.Context, l window.Layout) (*window.Window, error)
	Open(ctx context.Context, l window.Layout, of native.Window) (*window.Window, error)
}

// Memory returns the memory of all transfers over the connection, which the caller has authenticated. It is called
// once. From then on a server accepts data connections of the peer, until Close.
func (c *Control) Memory(authenticated *secure.Conn, s Settings) window.Memory {
	c.in.authenticated()
	c.leave()
	m := &memory{permitted: s.Paths, paths: make(map[wire.Path]dataPath)}
	if m.permitted == 0 || m.permitted.Intersect(connecting) != 0 {
		connections, err := c.dataConnections(authenticated, s)
		m.paths[wire.PathTLS], m.paths[wire.PathTCP], m.failed = connections, connections, err
	}
	sameUser := sync.OnceValues(c.peerIsSameUser)
	for _, path := range ucxPaths {
		if m.permitted == 0 || m.permitted.Has(path) {
			m.paths[path] = newUCXPath(path, s, sameUser)
		}
	}
	return m
}

// connecting are the paths that need data connections.
const connecting = job.Paths(1<<wire.PathTLS | 1<<wire.PathTCP)

// byDefault are the paths that need not be asked for. The others do not encrypt, and UCX does not protect a process
// from its peer and the network.
var byDefault = job.PathsOf(wire.PathTLS)

// permits reports whether a path may be used for a choice of the user.
func (m *memory) permits(path wire.Path, choice job.PathChoice) bool {
	permitted := m.permitted
	if permitted == 0 {
		permitted = byDefault
		if choice != job.AnyPath {
			permitted = job.EveryPath
		}
	}
	return permitted.Has(path) && choice.Permits(path)
}

// Paths implements window.Memory.
func (m *memory) Paths(choice job.PathChoice) (job.Paths, error) {
	if m.failed != nil {
		return 0, m.failed
	}
	var usable job.Paths
	var permitted int
	var reasons []error
	for path, of := range m.paths {
		if !m.permits(path, choice) {
			continue
		}
		permitted++
		if err := of.Usable(); err != nil {
			reasons = append(reasons, err)
			continue
		}
		usable |= job.PathsOf(path)
	}
	switch {
	case usable != 0:
		return usable, nil
	case permitted == 0:
		return 0, job.NewError(job.ErrSettings, nil, "use --path auto or tls on both sides",
			"the settings of this side permit no data path of a network connection")
	}
	if len(reasons) == 1 {
		return 0, reasons[0]
	}
	return 0, job.NewError(job.ErrCapability, errors.Join(reasons...), "use --path auto or tls",
		"this machine can use none of the permitted data paths")
}

// Check implements window.Memory. The limits of the protocol suffice.
func (*memory) Check(int64, int) error { return nil }

// Traits implements window.Memory.
func (m *memory) Traits(p job.Paths) window.Traits {
	var common window.Traits
	for path, of := range m.paths {
		if !p.Has(path) {
			continue
		}
		t := of.Traits()
		common.Largest = tighter(common.Largest, t.Largest)
		common.Deepest = tighter(common.Deepest, t.Deepest)
		common.Lanes = tighter(common.Lanes, t.Lanes)
		common.Offloaded = common.Offloaded || t.Offloaded
	}
	if preferred, found := native.PreferredPath(p.Has); found && m.paths[preferred] != nil {
		common.Sizes = m.paths[preferred].Traits().Sizes
	}
	return common
}

// tighter returns the smaller of two limits; 0 stands for no limit.
func tighter(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Overhead implements window.Buffering.
func (m *memory) Overhead(l window.Layout, peer native.Window) int64 {
	if path := m.paths[l.Path]; path != nil {
		return path.Overhead(l, peer)
	}
	return 0
}

// Expose implements window.Memory.
func (m *memory) Expose(ctx context.Context, l window.Layout) (*window.Window, error) {
	path, err := m.path(l)
	if err != nil {
		return nil, err
	}
	return path.Expose(ctx, l)
}

// Open implements window.Memory.
func (m *memory) Open(ctx context.Context, l window.Layout, of native.Window) (*window.Window, error) {
	path, err := m.path(l)
	if err != nil {
		return nil, err
	}
	return path.Open(ctx, l, of)
}

func (m *memory) path(l window.Layout) (dataPath, error) {
	if of := m.paths[l.Path]; of != nil {
		return of, nil
	}
	return nil, fmt.Errorf("internal error: %s is no path of this connection", l.Path)
}
