package config

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"github.com/tailscale/hujson"

	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// contacting is implemented by the settings of each command that talks to a daemon.
type contacting interface{ contact() *Contact }

func (s *Contact) contact() *Contact { return s }

// set takes over what is not an option: the peers of the files, and what the command line named itself.
func (s *Contact) set(peers Peers, flags *pflag.FlagSet) {
	s.Peers = peers
	s.deviceByFlag = flags.Changed("pci-addr") || flags.Changed("dev-pci")
	s.representorByFlag = flags.Changed("rep-pci")
}

// Choose returns the daemon at an address or of a name: its key, and the address, or the device and representor, by
// which this side reaches it. Those on the command line come first, then those of the peer, then those that the command
// was given in any other way. An empty name means the only peer, or, where there are none, any daemon on the given
// device. A daemon at an address that a peer has must have the key of that peer.
func (s *Contact) Choose(at share.Remote, device, representor string) (Peer, error) {
	if at.Address != "" {
		return s.peerAt(at.Address), s.validateContact(at.Address)
	}
	known, name := slices.Sorted(maps.Keys(s.Peers)), at.Peer
	if name == "" && len(known) == 1 {
		name = known[0]
	}
	peer, found := s.Peers[name]
	switch {
	case name == "" && len(known) > 1 && !s.deviceByFlag:
		return Peer{}, exit.Usagef(
			"the peer is not named and the configuration has several: write %s in front of the :",
			phrase.Or(known))
	case name != "" && !found:
		return Peer{}, unknownPeer(name, known)
	}
	if peer.Address != "" {
		return peer, s.validateContact(peer.Address)
	}
	if s.deviceByFlag {
		peer.Device = device
	}
	if s.representorByFlag {
		peer.Representor = representor
	}
	peer.Device, peer.Representor = cmp.Or(peer.Device, device), cmp.Or(peer.Representor, representor)
	return peer, nil
}

// peerAt returns the peer with the address, or one without a name.
func (s *Contact) peerAt(address string) Peer {
	for _, name := range slices.Sorted(maps.Keys(s.Peers)) {
		if s.Peers[name].Address == address {
			return s.Peers[name]
		}
	}
	return Peer{Address: address}
}

func unknownPeer(name string, known []string) error {
	if guess := phrase.Nearest(name, known); guess != "" {
		return exit.Usagef("unknown peer %s: did you mean %q?", quote.Text(name), guess)
	}
	if len(known) > 0 {
		return exit.Usagef("unknown peer %s: the configuration has %s; a local path with a colon needs ./ in front",
			quote.Text(name), phrase.And(known))
	}
	return exit.Usagef("unknown peer %s: the configuration names no peers, so leave the name out, as in :share/path; "+
		"a local path with a colon needs ./ in front", quote.Text(name))
}

// maxPeerKey is longer than the line of a key, in bytes.
const maxPeerKey = 512

// readPeer reads one member of groupPeers.
func (f *paramsFile) readPeer(name string, where, value hujson.Value) error {
	if share.CheckName(name) != nil {
		return f.failAt(where, "peer %s: not a name; give at most %d letters a-z, digits, dots, dashes and underscores",
			quote.Text(name), share.MaxName)
	}
	members, ok := value.Value.(*hujson.Object)
	if !ok {
		return f.failAt(value, "peer %s must be an object, not %s", name, kindNames[value.Value.Kind()])
	}
	peer := Peer{Origin: f.position(where)}
	of := paramsKeys{"peer " + name, layer{}, peerKeys(&peer), func(option) bool { return true }}
	err := f.eachMember(members, of.group, func(key string, where, value hujson.Value) error {
		return f.readKey(of, key, where, value)
	})
	if err == nil && peer.Address != "" && (peer.Device != "" || peer.Representor != "") {
		err = f.failAt(where, "peer %s has an address and a device: it is on another machine or behind a device, "+
			"so leave one of them out", name)
	}
	f.peers[name] = peer
	return err
}

// peerKeys returns the keys of a peer, bound to its fields.
func peerKeys(peer *Peer) []option {
	return []option{
		textOption(AddedFlags, "address", "HOST[:PORT]", &peer.Address, parseAs("an address", share.ParseAddress),
			"Address of a daemon on another machine; the default port is 7483. Not beside a device"),
		textOption(AddedFlags, "device", "DEVICE", &peer.Device, parseDevice,
			"Device of this side by which the daemon is reached, as with --pci-addr"),
		textOption(AddedFlags, "key", "KEY", &peer.Key, parsePeerKey,
			"Key that the daemon must have: the name of a trusted key, or the line that dma-copy keys show prints. "+
				"Without: any trusted key"),
		textOption(AddedFlags, "representor", "DEVICE", &peer.Representor, parseRepresentor,
			"Host function whose daemon is meant, on the DPU, as with --rep-pci"),
	}
}

// parsePeerKey checks only the shape: whether there is a key of that name is known when it is needed.
func parsePeerKey(text string) (string, error) {
	if text == "" || len(text) > maxPeerKey || quote.Printable(text) != text {
		return "", errors.New("not a key; give the name of a trusted key, or the line that dma-copy keys show prints")
	}
	return text, nil
}
