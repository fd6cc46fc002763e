package option

import (
	"errors"
	"maps"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// values returns what each peer has, by name.
func (p Peers) values() []Value {
	var values []Value
	for _, name := range slices.Sorted(maps.Keys(p)) {
		for _, field := range []struct{ key, text string }{
			{"device", p[name].Device}, {"representor", p[name].Representor}, {"key", p[name].Key},
			{"address", p[name].Address},
		} {
			if field.text != "" {
				values = append(values, Value{"peers." + name + "." + field.key, field.text, p[name].Origin})
			}
		}
	}
	return values
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
	of := paramsKeys{"peer " + name, layer{}, peerKeys(&peer), func(Option) bool { return true }}
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
func peerKeys(peer *Peer) []Option {
	return []Option{
		Text(AddedFlags, "address", "HOST[:PORT]", &peer.Address, ParseAs("an address", share.ParseAddress),
			"Address of a daemon on another machine; the default port is 7483. Not beside a device"),
		Text(AddedFlags, "device", "DEVICE", &peer.Device, ParseDevice,
			"Device of this side by which the daemon is reached, as with --pci-addr"),
		Text(AddedFlags, "key", "KEY", &peer.Key, parsePeerKey,
			"Key that the daemon must have: the name of a trusted key, or the line that dma-copy keys show prints. "+
				"Without: any trusted key"),
		Text(AddedFlags, "representor", "DEVICE", &peer.Representor, ParseRepresentor,
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

// Peer is a daemon that the configuration gives a name.
type Peer struct {
	Device      string // of this side; empty: as without a name
	Representor string // of the daemon's host function, on the DPU; empty: as without a name
	Key         string // name of a trusted key, or the key itself as one line; empty: any trusted key
	Origin      string // file and line
	Address     string // HOST:PORT of a daemon on another machine; empty: over a device
}

// Peers are the daemons with a name.
type Peers map[string]Peer
