package serve

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/tcpport"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// listen opens the port of a daemon.
func (d *daemon) listen(ctx context.Context) (*service.NetworkDaemon, error) {
	s := d.settings
	if err := connect.InsistOnUCX(s.Driver.Options()); err != nil {
		return nil, err
	}
	if s.UsesUCX() {
		if err := d.checkUCX(); err != nil {
			return nil, err
		}
	}
	connect.WarnOfDeviceMemory(s.Network.Settings, ucx.RDMAPorts(), d.log)
	settings := connect.NetworkSettings(s.Network.Settings, s.IdleTimeout, device.WirePaths(s.NetworkPaths()))
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
func cannotListen(s *Settings, err error) error {
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
