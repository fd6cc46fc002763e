package network

import (
	"cmp"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network/ucxpath"
)

// ucxPaths are the data paths over UCX. Nothing of UCX is loaded or opened before a transfer uses one.
var ucxPaths = []wire.Path{wire.PathMessages, wire.PathRMA}

func newUCXPath(path wire.Path, s Settings, sameUser func() (bool, error)) *ucxpath.Path {
	settings := s.UCX
	settings.TrafficClass = cmp.Or(settings.TrafficClass, s.TrafficClass)
	return ucxpath.New(path, ucxpath.Config{
		UCX: settings, ReachTime: s.ReachTime, SameUser: sameUser, HardwareOnly: s.HardwareOnly,
	})
}
