package option

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/tailscale/hujson"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// PeerOptions are the flags for the fields of a peer, under the names of its keys.
func PeerOptions(peer *Peer) []Option { return FlagsOnly(peerKeys(peer)...) }

// WithPeer returns the text of the parameter file at a path with a peer, which replaces the one that has its name, or
// without it if peer is nil. Everything else stays as it is, comments too. A file that is missing counts as empty, and
// one that is invalid, now or then, is an error.
func (c Commands) WithPeer(path, name string, peer *Peer) ([]byte, error) {
	text, err := readParams(path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing:
		text = []byte("{}\n")
	case err != nil:
		return nil, exit.Usagef("%s: %w; name a readable parameter file", quote.Text(path), err)
	}
	before := c.newParamsFile(path, text)
	if err := before.parse(); err != nil {
		return nil, err
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err // not reached: it was parsed
	}
	patch, err := patchOf(root.Find("/"+groupPeers) != nil, name, peer)
	if err == nil {
		err = root.Patch(patch)
	}
	if err != nil {
		return nil, exit.Errorf(exit.Failure, "", "edit %s: %w", quote.Text(path), err)
	}
	if missing {
		root.Format()
	} else if peer != nil {
		indent(root.Find("/"+groupPeers), name)
	}
	after := c.newParamsFile(path, root.Pack())
	return after.text, after.parse()
}

// indent writes the peer with a name like the first one of the group, on a line of its own if that is.
func indent(group *hujson.Value, name string) {
	members := group.Value.(*hujson.Object).Members
	for i := range members {
		if member := &members[i]; member.Name.Value.(hujson.Literal).String() == name {
			if first := members[0].Name.BeforeExtra; len(members) > 1 { // in front of it, comments on the one before
				comments := bytes.TrimRight(member.Name.BeforeExtra, " \t\n")
				line := first[max(0, bytes.LastIndexByte(first, '\n')):]
				member.Name.BeforeExtra = append(bytes.Clone(comments), line...)
			}
			member.Value.Format()
			member.Value.BeforeExtra, member.Value.AfterExtra = []byte(" "), nil
		}
	}
}

// patchOf returns the JSON patch that sets or removes a peer. grouped says that the file has the group of peers.
func patchOf(grouped bool, name string, peer *Peer) ([]byte, error) {
	type operation struct {
		Operation string `json:"op"`
		Path      string `json:"path"`
		Value     any    `json:"value,omitempty"`
	}
	at := "/" + groupPeers + "/" + name
	if peer == nil {
		return json.Marshal([]operation{{Operation: "remove", Path: at}})
	}
	fields := map[string]string{}
	for _, v := range (Peers{name: *peer}).values() {
		fields[v.Name[len(groupPeers+".."+name):]] = v.Text
	}
	if !grouped {
		return json.Marshal([]operation{{"add", "/" + groupPeers, map[string]any{name: fields}}})
	}
	return json.Marshal([]operation{{"add", at, fields}})
}
