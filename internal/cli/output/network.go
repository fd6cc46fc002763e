package output

import (
	"cmp"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// pathTitle returns by which path the bytes of a copy went. Between machines it says what protects them: TLS encrypts
// them, and the digests that travel inside TLS authenticate what other paths have moved.
func pathTitle(s job.Summary, path Path) string {
	if path.Address == "" {
		return path.Driver
	}
	return transportTitle(s) + " to " + path.Address + " (" + protection(s, path) + ")"
}

// transportTitle returns the path of a copy between machines, and the transport that UCX has chosen for it.
func transportTitle(s job.Summary) string {
	if s.Transport == "" {
		return s.DataPath.String()
	}
	return s.DataPath.String() + " over " + s.Transport
}

// protection returns what protects the bytes on their way between machines.
func protection(s job.Summary, path Path) string {
	switch {
	case s.DataPath.Encrypts():
		return "encrypted"
	case path.Peer != nil && path.Peer.Authenticated:
		return "authenticated, not encrypted"
	default:
		return "not encrypted"
	}
}

// peerTitle says who the daemon is, and over a device what protects the bytes. Between machines that depends on the
// path.
func (p Path) peerTitle() string {
	encrypted := ""
	if p.Address == "" {
		encrypted = ", not encrypted"
	}
	if !p.Peer.Authenticated {
		return "not authenticated" + encrypted + " (--auth none)"
	}
	return cmp.Or(p.Peer.Key, p.Peer.Fingerprint) + ": authenticated" + encrypted
}

// ofNetwork returns a value for an event about a copy between machines, nil over a device.
func (p Path) ofNetwork(value bool) *bool {
	if p.Address == "" {
		return nil
	}
	return &value
}
