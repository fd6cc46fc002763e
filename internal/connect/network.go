package connect

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// NetworkSettings returns the settings of network connections that permit some paths; none: tls, or the one that a
// copy asks for. As a device gives up within half of the idle timeout, so does the first read of a window.
func NetworkSettings(s ucx.Settings, idleTimeout time.Duration, permitted job.Paths) network.Settings {
	return network.Settings{
		TrafficClass: s.TrafficClass, UCX: ucxSettings(s, idleTimeout), ReachTime: idleTimeout / 2, Paths: permitted,
	}
}

// ucxSettings returns the settings of UCX. A time or count of acknowledgements that the user has not chosen follows
// from the idle timeout: an RDMA device gives up before it, so that the copy ends with a reason.
func ucxSettings(s ucx.Settings, idleTimeout time.Duration) ucx.Settings {
	timeout, retries := ucx.AckFor(idleTimeout)
	s.AckTimeout, s.AckRetries = cmp.Or(s.AckTimeout, timeout), cmp.Or(s.AckRetries, retries)
	return s
}

// InsistOnUCX fails unless UCX loads, if the user insists on it.
func InsistOnUCX(s doca.Options) error {
	if s.Choice != DriverUCX {
		return nil
	}
	context, err := ucx.Open(ucx.Settings{Transports: []string{"self"}})
	if err != nil {
		return err
	}
	return context.Close()
}

// WarnOfDeviceMemory warns of --device-memory on a machine with these RDMA ports, if none is of a device with memory.
func WarnOfDeviceMemory(s ucx.Settings, ports []ucx.Port, log zerolog.Logger) {
	if s.DeviceMemory > 0 && !slices.ContainsFunc(ports, func(p ucx.Port) bool { return !p.Software }) {
		log.Warn().Msg("--device-memory has no effect: this machine has no RDMA device with memory of its own")
	}
}

// dial connects to a daemon on another machine, and authenticates both sides.
func (d Daemon) dial(ctx context.Context, c service.ClientConfig) (*service.Client, error) {
	if err := InsistOnUCX(d.Driver); err != nil {
		return nil, err
	}
	if !d.Warned {
		WarnOfDeviceMemory(d.UCX, ucx.RDMAPorts(), c.Log)
	}
	var permitted job.Paths
	if d.Encrypt {
		permitted = job.PathsOf(wire.PathTLS)
	}
	settings := NetworkSettings(d.UCX, d.IdleTimeout, permitted)
	settings.Bandwidth, settings.OnlyLoopback, settings.RefusedAtOnce = d.Bandwidth, d.Identity.Anonymous, !d.WaitGiven
	client, err := service.DialNetwork(ctx, service.NetworkMeeting{
		Address: d.Address, Wait: d.Wait, Settings: settings,
	}, c)
	return client, unreachable(d.Address, err)
}

// unreachable says what to do about a name that does not exist, or that is not the one of this machine.
func unreachable(address string, err error) error {
	if errors.Is(err, network.ErrNotLoopback) {
		return exit.Usagef("--auth none with ucx://%s: the name has an address of another machine, where anybody "+
			"could be the daemon: give 127.0.0.1 or [::1], or use keys", quote.Bare(address))
	}
	if _, unknown := errors.AsType[*net.DNSError](err); !unknown || errors.Is(err, comch.ErrPeerAbsent) {
		return err
	}
	return exit.Errorf(exit.Peer, "check the name in ucx://"+address, "no daemon: %w", err)
}
