package config

import (
	"net"
	"net/netip"
	"slices"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// ValidateFor checks the settings against the kind of connection: with another machine, or over a device. Call it when
// the peer is known.
func (s *Transfer) ValidateFor(network bool) error {
	if network {
		return s.Network.validatePath(s.Path)
	}
	if s.Encrypt {
		return exit.Usagef("--encrypt is for daemons on other machines: over a device, file data is authenticated " +
			"by its digest and not encrypted, so leave it out")
	}
	return s.Path.validateForDevice()
}

// validatePath refuses a path that a connection with another machine does not have, or that --encrypt does not permit.
func (n Network) validatePath(path PathChoice) error {
	switch {
	case path != PathAuto && !path.isNetwork():
		return exit.Usagef("--path %s is for devices: to another machine give auto, tls, tcp, am or rma", path)
	case n.Encrypt && path != PathAuto && path != PathTLS:
		return exit.Usagef("--encrypt conflicts with --path %s: only tls encrypts file data", path)
	}
	return nil
}

// validateForDevice refuses a path that a device does not have.
func (p PathChoice) validateForDevice() error {
	if !p.isNetwork() {
		return nil
	}
	return exit.Usagef("--path %s is for daemons on other machines (ucx://HOST:PORT/SHARE/PATH): "+
		"over a device give auto, dma or fast", p)
}

// errDriverUCX refuses the driver of connections with other machines where there is none.
func errDriverUCX() error {
	return exit.Usagef("--driver ucx is for daemons on other machines (ucx://HOST:PORT/SHARE/PATH, serve --listen): " +
		"over a device give auto, doca or soft")
}

// ValidateForDevice refuses the driver of connections with other machines.
func (s Driver) ValidateForDevice() error {
	if s.Name == DriverUCX {
		return errDriverUCX()
	}
	return nil
}

// ValidateForNetwork refuses what only a device can do.
func (s Driver) ValidateForNetwork() error {
	if s.RequireHW {
		return exit.Usagef("--require-hw refuses the software device, and a connection with another machine uses no " +
			"device: leave it out, or insist on RDMA devices with --path rma")
	}
	return nil
}

// ServesNetwork reports whether the daemon listens for other machines.
func (s *Serve) ServesNetwork() bool { return s.Listen.IsValid() }

// ServesDevice reports whether the daemon serves commands on the other side of a device. With --listen it does so only
// if a device is named.
func (s *Serve) ServesDevice() bool {
	return !s.ServesNetwork() || s.Device != "" || len(s.Representors) > 0
}

// DevicePath returns the path that the daemon permits over a device.
func (s *Serve) DevicePath() PathChoice {
	if listed := intersection(s.Paths, devicePaths); len(listed) == 1 {
		return listed[0]
	}
	return PathAuto
}

// NetworkPaths returns the paths that the daemon permits to other machines: tls unless others are listed.
func (s *Serve) NetworkPaths() []PathChoice {
	listed := intersection(s.Paths, networkPaths)
	if s.Encrypt || len(listed) == 0 {
		return []PathChoice{PathTLS}
	}
	return listed
}

// UsesUCX reports whether the daemon uses UCX: only for a path that is listed.
func (s *Serve) UsesUCX() bool {
	return s.ServesNetwork() && len(intersection(s.NetworkPaths(), []PathChoice{PathMessages, PathRMA})) > 0
}

func intersection(some, known []PathChoice) []PathChoice {
	return slices.DeleteFunc(slices.Clone(known), func(each PathChoice) bool { return !slices.Contains(some, each) })
}

// validateNetwork checks what is about other machines.
func (s *Serve) validateNetwork() error {
	for _, path := range s.Paths {
		switch {
		case path.isNetwork() && !s.ServesNetwork():
			return exit.Usagef("--path %s is for connections with other machines: give --listen ADDRESS:PORT, too",
				path)
		case !path.isNetwork() && !s.ServesDevice():
			return exit.Usagef("--path %s is for devices, and --listen alone serves none: name one with -p, "+
				"or leave %[1]s out", path)
		case s.Encrypt && path.isNetwork() && path != PathTLS:
			return exit.Usagef("--encrypt conflicts with --path %s: only tls encrypts file data", path)
		}
	}
	switch {
	case s.Encrypt && s.ServesDevice():
		return exit.Usagef("--encrypt conflicts with serving a device: file data over it is not encrypted, " +
			"so serve other machines (--listen) by a daemon of its own, or permit tls only with --path tls")
	case s.Driver.Name == DriverUCX && s.ServesDevice():
		return errDriverUCX()
	case s.ServesNetwork() && !s.ServesDevice() && s.Driver.RequireHW:
		return s.Driver.ValidateForNetwork()
	case s.ServesNetwork() && s.Auth == AuthNone && !s.Listen.Addr().IsLoopback():
		return exit.Usagef("--auth none with --listen %s would serve anybody on the network: "+
			"listen on 127.0.0.1 or [::1], or use keys", s.Listen)
	}
	return nil
}

// validateContact checks how a daemon on another machine is reached.
func (s *Contact) validateContact(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err // not reached: share.ParseAddress has made it
	}
	if s.deviceByFlag || s.representorByFlag {
		return exit.Usagef("-p and -r name a device, and ucx://%s is on another machine: leave them out",
			quote.Bare(address))
	}
	if s.Auth == AuthNone && !isLoopback(host) {
		return exit.Usagef("--auth none with ucx://%s: anybody on the network could be the daemon, so it is for "+
			"127.0.0.1, [::1] and localhost only: use keys", quote.Bare(address))
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback() || host == "localhost"
}
