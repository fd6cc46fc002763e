package network

import (
	"cmp"
	"context"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/network/ucxpath"
)

// ucxDataPath is a dataPath over UCX.
type ucxDataPath struct{ path *ucxpath.Path }

// ucxPaths are the data paths over UCX. Nothing of UCX is loaded or opened before a transfer uses one.
var ucxPaths = []negotiate.Path{negotiate.PathMessages, negotiate.PathRMA}

func newUCXPath(path negotiate.Path, s Settings, sameUser func() (bool, error)) ucxDataPath {
	settings := s.UCX
	settings.TrafficClass = cmp.Or(settings.TrafficClass, s.TrafficClass)
	return ucxDataPath{ucxpath.New(path, ucxpath.Config{
		UCX: settings, ReachTime: s.ReachTime, SameUser: sameUser, HardwareOnly: s.HardwareOnly,
	})}
}

func (d ucxDataPath) usable() error { return d.path.Usable() }

func (d ucxDataPath) traits() native.Traits { return d.path.Traits() }

func (d ucxDataPath) overhead(l native.Layout, peer negotiate.Window) int64 {
	return d.path.Overhead(l, peer)
}

func (d ucxDataPath) expose(ctx context.Context, l native.Layout) (*native.Window, error) {
	return d.path.Expose(ctx, l)
}

func (d ucxDataPath) open(ctx context.Context, l native.Layout, of negotiate.Window) (*native.Window, error) {
	return d.path.Open(ctx, l, of)
}
