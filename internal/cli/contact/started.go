package contact

import (
	"cmp"
	"context"
	"io"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/share"
	"github.com/dma-copy/dma-copy/internal/sshstart"
)

// Started is what a command needs of a far side that ssh starts for it.
type Started struct {
	Access share.Access // to the directory; 0: share.Read
	Create bool         // the directory may be missing
	Path   device.Path  // of file data; empty: any
}

// start starts the daemon with ssh, and connects to it.
func (r Reach) start(
	ctx context.Context, d connect.Daemon, stderr io.Writer, log zerolog.Logger,
) (*connect.Conn, error) {
	if r.deviceByFlag || r.RepresentorByFlag {
		return nil, exit.Usagef("-p and -r name a device, and %s is on another machine: leave them out",
			r.Daemon.Daemon())
	}
	if err := r.check(true); err != nil {
		return nil, err
	}
	return connect.Start(ctx, d, r.Daemon.Login, sshstart.Request{
		Directory: r.Daemon.Share, Access: cmp.Or(r.Started.Access, share.Read), Create: r.Started.Create,
		Path: string(cmp.Or(r.Started.Path, device.PathAuto)),
	}, stderr, log)
}
