package config

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// ValidateFor checks the settings against the kind of connection: with another machine, or over a device. Call it when
// the peer is known.
func (s *Transfer) ValidateFor(network bool) error {
	if network {
		return s.Network.ValidatePath(s.Path)
	}
	if s.Encrypt {
		return exit.Usagef("--encrypt is for daemons on other machines: over a device, file data is authenticated " +
			"by its digest and not encrypted, so leave it out")
	}
	return s.Path.ValidateForDevice()
}

// ServesNetwork reports whether the daemon listens for other machines.
func (s *Serve) ServesNetwork() bool { return s.Listen.IsValid() }

// ServesDevice reports whether the daemon serves commands on the other side of a device. With --listen it does so only
// if a device is named.
func (s *Serve) ServesDevice() bool {
	return !s.ServesNetwork() || s.Device != "" || len(s.Representors) > 0
}

// DevicePath returns the path that the daemon permits over a device.
func (s *Serve) DevicePath() device.Path {
	if listed := intersection(s.Paths, device.DevicePaths); len(listed) == 1 {
		return listed[0]
	}
	return device.PathAuto
}

// NetworkPaths returns the paths that the daemon permits to other machines: tls unless others are listed.
func (s *Serve) NetworkPaths() []device.Path {
	listed := intersection(s.Paths, device.NetworkPaths)
	if s.Encrypt || len(listed) == 0 {
		return []device.Path{device.PathTLS}
	}
	return listed
}

// UsesUCX reports whether the daemon uses UCX: only for a path that is listed.
func (s *Serve) UsesUCX() bool {
	return s.ServesNetwork() && len(intersection(s.NetworkPaths(), []device.Path{device.PathMessages,
		device.PathRMA})) > 0
}

func intersection(some, known []device.Path) []device.Path {
	return slices.DeleteFunc(slices.Clone(known), func(each device.Path) bool { return !slices.Contains(some, each) })
}

// validateNetwork checks what is about other machines.
func (s *Serve) validateNetwork() error {
	for _, path := range s.Paths {
		switch {
		case path.IsNetwork() && !s.ServesNetwork():
			return exit.Usagef("--path %s is for connections with other machines: give --listen ADDRESS:PORT, too",
				path)
		case !path.IsNetwork() && !s.ServesDevice():
			return exit.Usagef("--path %s is for devices, and --listen alone serves none: name one with -p, "+
				"or leave %[1]s out", path)
		case s.Encrypt && path.IsNetwork() && path != device.PathTLS:
			return exit.Usagef("--encrypt conflicts with --path %s: only tls encrypts file data", path)
		}
	}
	switch {
	case s.Encrypt && s.ServesDevice():
		return exit.Usagef("--encrypt conflicts with serving a device: file data over it is not encrypted, " +
			"so serve other machines (--listen) by a daemon of its own, or permit tls only with --path tls")
	case s.Driver.Name == device.DriverUCX && s.ServesDevice():
		return device.ErrDriverUCX()
	case s.ServesNetwork() && !s.ServesDevice() && s.Driver.RequireHW:
		return s.Driver.ValidateForNetwork()
	case s.ServesNetwork() && s.Auth == contact.AuthNone && !s.Listen.Addr().IsLoopback():
		return exit.Usagef("--auth none with --listen %s would serve anybody on the network: "+
			"listen on 127.0.0.1 or [::1], or use keys", s.Listen)
	}
	return nil
}
