package report

import (
	"cmp"

	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Path describes the device and driver of a copy on this side, or of a local copy, or the other machine.
type Path struct {
	Software string // name and version of this program
	Side     wire.Side
	Local    bool   // both sides are in this process
	Target   string // of a local copy, as given
	Device   string // PCI address, or the RDMA device of an SF; empty between machines
	Address  string // of a daemon on another machine, HOST:PORT; empty: over a device
	Driver   string // its title for the user
	Hardware bool
	Reason   string // why this driver; empty if the user chose it
	Warning  string // of a fallback to the software device; it is in the log, and an event

	File   string // of this side, as given
	Remote string // what the peer's file is called, of a copy with a daemon; otherwise empty
	Peer   *Peer  // the daemon; nil for any other copy

	Location native.Location // of the peer's file, as the peer says; zero if it does not, or has not yet
	Wait     Wait            // for the other side; may be zero
}

// Peer describes a daemon to the user of a command.
type Peer struct {
	Key           string // name of its trusted key; empty: none
	Fingerprint   string // of its key
	Software      string // name and version that it reports
	Machine, User string // where it runs and as whom, as it says; may be empty
	Authenticated bool   // both sides have proved a key that the other one trusts
}

// Role returns this side, or that it is both.
func (p Path) Role() string {
	if p.Local {
		return "local"
	}
	return RoleOf(p.Side)
}

// RoleOf returns the side: as --role spells it, or of a network connection.
func RoleOf(side wire.Side) string {
	switch side {
	case wire.Host:
		return "host"
	case wire.DPU:
		return "dpu"
	default:
		return side.String()
	}
}

// End returns the last lines of a summary: who the peer is, and why this driver.
func (p Path) End() (lines string) {
	if peer := p.PeerOf(); peer != "" {
		lines = "peer  " + peer + "\n"
	}
	if p.Reason != "" {
		lines += "why   " + quote.Printable(p.Reason) + "\n"
	}
	return lines
}

// PeerOf returns the other side, empty if nothing is known of it.
func (p Path) PeerOf() string {
	if p.Peer != nil {
		return p.PeerTitle() + p.Peer.claim()
	}
	return locationTitle(p.Location)
}

// claim returns who the daemon says it is. Its key says who it is.
func (p Peer) claim() string {
	if at := locationTitle(native.Location{Machine: p.Machine, User: p.User}); at != "" {
		return "; says it is " + at
	}
	return ""
}

// locationTitle returns where the peer's file is, as scp and rsync write it: USER@MACHINE:PATH.
func locationTitle(l native.Location) string {
	at := l.Machine
	if l.User != "" && at != "" {
		at = l.User + "@" + at
	}
	return quote.Printable(phrase.Join(":", at, l.Path))
}

// PeerTitle says who the daemon is, and over a device what protects the bytes. Between machines that depends on the
// path.
func (p Path) PeerTitle() string {
	encrypted := ""
	if p.Address == "" {
		encrypted = ", not encrypted"
	}
	if !p.Peer.Authenticated {
		return "not authenticated" + encrypted + " (--auth none)"
	}
	return cmp.Or(p.Peer.Key, p.Peer.Fingerprint) + ": authenticated" + encrypted
}

// OfNetwork returns a value for an event about a copy between machines, nil over a device.
func (p Path) OfNetwork(value bool) *bool {
	if p.Address == "" {
		return nil
	}
	return &value
}
