package config

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Loaded takes over what is not an option: the peers of the files, and what the command line named itself.
func (s *Contact) Loaded(l option.Loaded) {
	s.Peers, s.WaitGiven = l.Peers, !l.IsDefault("wait")
	s.deviceByFlag = l.Flags.Changed("pci-addr") || l.Flags.Changed("dev-pci")
	s.representorByFlag = l.Flags.Changed("rep-pci")
}

// UsesPeers marks settings to which the peers of the parameter files belong.
func (s *Contact) UsesPeers() {}

// Choose returns the daemon at an address or of a name: its key, and the address, or the device and representor, by
// which this side reaches it. Those on the command line come first, then those of the peer, then those that the command
// was given in any other way. An empty name means the only peer, or, where there are none, any daemon on the given
// device. A daemon at an address that a peer has must have the key of that peer.
func (s *Contact) Choose(at share.Remote, device, representor string) (option.Peer, error) {
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
		return option.Peer{}, exit.Usagef(
			"the peer is not named and the configuration has several: write %s in front of the :",
			phrase.Or(known))
	case name != "" && !found:
		return option.Peer{}, unknownPeer(name, known)
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
func (s *Contact) peerAt(address string) option.Peer {
	for _, name := range slices.Sorted(maps.Keys(s.Peers)) {
		if s.Peers[name].Address == address {
			return s.Peers[name]
		}
	}
	return option.Peer{Address: address}
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
