package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/tcpport"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// networkPaths are the paths of network connections by their names.
var networkPaths = map[config.PathChoice]wire.Path{
	config.PathTLS: wire.PathTLS, config.PathMessages: wire.PathMessages, config.PathRMA: wire.PathRMA,
	config.PathTCP: wire.PathTCP,
}

// networkSettings returns the settings of network connections that permit some paths; none: tls, or the one that a
// copy asks for. As a device gives up within half of the idle timeout, so does the first read of a window.
func networkSettings(n config.Network, idleTimeout time.Duration, permitted []config.PathChoice) network.Settings {
	s := network.Settings{
		TrafficClass: n.TrafficClass, UCX: ucxSettings(n, idleTimeout), ReachTime: idleTimeout / 2,
	}
	for _, path := range permitted {
		s.Paths |= job.PathsOf(networkPaths[path])
	}
	return s
}

// ucxSettings returns the settings of UCX. What the user has not chosen of acknowledgements follows from the idle
// timeout: an RDMA device gives up before it, so that the copy ends with a reason.
func ucxSettings(n config.Network, idleTimeout time.Duration) ucx.Settings {
	s := n.Settings
	timeout, retries := ucx.AckFor(idleTimeout)
	s.AckTimeout, s.AckRetries = cmp.Or(s.AckTimeout, timeout), cmp.Or(s.AckRetries, retries)
	return s
}

// insistOnUCX fails unless UCX loads, if the user insists on it.
func insistOnUCX(s config.Driver) error {
	if s.Name != config.DriverUCX {
		return nil
	}
	context, err := ucx.Open(ucx.Settings{Transports: []string{"self"}})
	if err != nil {
		return err
	}
	return context.Close()
}

// warnOfDeviceMemory warns of --device-memory on a machine with these RDMA ports, if none is of a device with memory.
func warnOfDeviceMemory(n config.Network, ports []ucx.Port, log zerolog.Logger) {
	if n.DeviceMemory > 0 && !slices.ContainsFunc(ports, func(p ucx.Port) bool { return !p.Software }) {
		log.Warn().Msg("--device-memory has no effect: this machine has no RDMA device with memory of its own")
	}
}

// dial connects to a daemon on another machine, and authenticates both sides.
func dial(ctx context.Context, address string, r reach, c service.ClientConfig) (*service.Client, error) {
	if err := insistOnUCX(r.Driver); err != nil {
		return nil, err
	}
	if !r.warned {
		warnOfDeviceMemory(r.Network, ucx.RDMAPorts(), c.Log)
	}
	var permitted []config.PathChoice
	if r.Encrypt {
		permitted = []config.PathChoice{config.PathTLS}
	}
	settings := networkSettings(r.Network, r.IdleTimeout, permitted)
	settings.Bandwidth, settings.OnlyLoopback = r.bandwidth, r.Auth == config.AuthNone
	settings.RefusedAtOnce = !r.WaitGiven
	client, err := service.DialNetwork(ctx, service.NetworkMeeting{
		Address: address, Wait: r.Wait, Settings: settings,
	}, c)
	return client, unreachable(address, err)
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

// listen opens the port of a daemon.
func (d *daemon) listen(ctx context.Context) (*service.NetworkDaemon, error) {
	s := d.settings
	if err := insistOnUCX(s.Driver); err != nil {
		return nil, err
	}
	if s.UsesUCX() {
		if err := d.checkUCX(); err != nil {
			return nil, err
		}
	}
	warnOfDeviceMemory(s.Network, ucx.RDMAPorts(), d.log)
	settings := networkSettings(s.Network, s.IdleTimeout, s.NetworkPaths())
	settings.Bandwidth = s.Options.Bandwidth
	settings.HardwareOnly = func() bool { return d.confined.Apart() } // set before a connection is accepted
	settings.Refused = func(peer net.Addr, reason error) {
		d.numbers.ConnectionRefused()
		address := "" // of a connection that has none any more
		if peer != nil {
			address = peer.String()
		}
		d.log.Info().Str("peer", address).Err(printable(reason)).Msg("a connection was refused")
	}
	listening, err := service.ListenNetwork(ctx, d.server, s.Listen.String(), settings, d.log)
	if err != nil {
		return nil, cannotListen(s, err)
	}
	return listening, nil
}

// checkUCX finds out at the start of a daemon what would make each copy over UCX fail.
func (d *daemon) checkUCX() error {
	found, err := inventory.TakeNetwork()
	if errors.Is(err, ucx.ErrTooManyDevices) && len(d.settings.NetDevices) > 0 {
		return nil // which UCX cannot list, and may have nevertheless
	}
	if err != nil {
		d.log.Warn().Err(err).Msg("UCX cannot be used, so am and rma copies will fail")
		return nil
	}
	if unknown := found.UnknownDevice(d.settings.NetDevices); unknown != "" {
		return exit.Errorf(exit.Device, "give some of "+strings.Join(found.NetDevices(), ", "),
			"--net-devices %s: UCX knows no such device", unknown)
	}
	return nil
}

// cannotListen says who has the port.
func cannotListen(s *config.Serve, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		owner, _ := tcpport.Listening(s.Listen)
		return exit.Errorf(exit.Device, "stop it, or choose another port", "--listen %s: the port is in use by %s",
			s.Listen, owner)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return exit.Usagef("--listen %s: this machine does not have that address: see ip address", s.Listen)
	case errors.Is(err, syscall.EACCES):
		return exit.Usagef("--listen %s: no permission to use this port: choose one from 1024 on", s.Listen)
	}
	return exit.Errorf(exit.Device, "", "--listen %s: %w", s.Listen, err)
}
