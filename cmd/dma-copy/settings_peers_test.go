package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/ls"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/share"
)

const twoPeers = `{"peers": {
	"dpu": {"device": "b1:00.1", "key": "the dpu's"},
	"host": {"device": "03:00.1", "representor": "b1:00.0"},
}}`

// contacted returns how ls reaches the daemon of a name.
func contacted(t *testing.T, site, file, line, name string) (option.Peer, error) {
	t.Helper()
	inNewDir(t, "site.json", site)
	writeFile(t, "params.json", file)
	variables, args := map[string]string{}, words(line)
	if site != "" {
		variables["DMA_COPY_CONFIG"] = "site.json"
	}
	if file != "" {
		args = append(args, "-j", "params.json")
	}
	var s ls.Settings
	if err := load(&s, variables, args...); err != nil {
		return option.Peer{}, err
	}
	return s.Choose(share.Remote{Peer: name}, s.Device, s.Representor)
}

func TestPeers(t *testing.T) {
	peer := func(device, representor, key, origin string) option.Peer {
		return option.Peer{Device: device, Representor: representor, Key: key, Origin: origin}
	}
	const onePeer = `{"peers": {"dpu": {"device": "site-device", "key": "k"}}}`
	for name, tc := range map[string]struct {
		site, file, line, peer string
		want                   option.Peer
	}{
		"by name":            {"", twoPeers, "", "host", peer("03:00.1", "b1:00.0", "", "params.json:3")},
		"with a key":         {"", twoPeers, "", "dpu", peer("b1:00.1", "", "the dpu's", "params.json:2")},
		"the only one":       {onePeer, "", "", "", peer("site-device", "", "k", "site.json:1")},
		"flags first":        {"", twoPeers, "-p x -r y", "host", peer("x", "y", "", "params.json:3")},
		"the old flag":       {"", twoPeers, "-d x", "host", peer("x", "b1:00.0", "", "params.json:3")},
		"no peers":           {"", "", "", "", option.Peer{}},
		"none, by the flag":  {"", twoPeers, "-p x", "", option.Peer{Device: "x"}},
		"--json before site": {onePeer, twoPeers, "", "dpu", peer("b1:00.1", "", "the dpu's", "params.json:2")},
		"peer before a file's device": {
			`{"doca_program_flags": {"pci-addr": "other", "rep-pci": "kept"}}`, twoPeers, "", "dpu",
			peer("b1:00.1", "kept", "the dpu's", "params.json:2")},
	} {
		got, err := contacted(t, tc.site, tc.file, tc.line, tc.peer)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, tc.want)
		}
	}
}

func TestRefusedPeers(t *testing.T) {
	for _, tc := range []struct{ file, name, sentence string }{
		{twoPeers, "", "the peer is not named and the configuration has several: write dpu or host in front of the :"},
		{twoPeers, "dqu", `unknown peer "dqu": did you mean "dpu"?`},
		{twoPeers, "somewhere", `unknown peer "somewhere": the configuration has dpu and host; `},
		{"", "dpu", `unknown peer "dpu": the configuration names no peers, so leave the name out, as in :share/path; `},
		{`{"peers": []}`, "", "params.json:1: peers must be an object, not an array"},
		{`{"peers": {"dpu": "b1:00.1"}}`, "", "params.json:1: peer dpu must be an object, not a string"},
		{`{"peers": {"a:b": {}}}`, "", `params.json:1: peer "a:b": not a name; `},
		{"{\"peers\": {\"dpu\": {\n\"devcie\": \"x\"}}}", "",
			`params.json:2: unknown key "devcie" in peer dpu: did you mean "device"?`},
		{`{"peers": {"dpu": {"port": "x"}}}`, "",
			`params.json:1: unknown key "port" in peer dpu: use address, device, key or representor`},
		{`{"peers": {"dpu": {"device": 3}}}`, "", `params.json:1: "device" in peer dpu must be a string, not a number`},
		{`{"peers": {"dpu": {"device": "a b"}}}`, "", `params.json:1: device "a b": not a device; `},
		{`{"peers": {"dpu": {"key": ""}}}`, "", `params.json:1: key "": not a key; `},
		{`{"peers": {"dpu": {"key": "` + strings.Repeat("k", 512+1) + `"}}}`, "",
			`params.json:1: key "kkk`},
		{`{"peers": {"dpu": {}, "dpu": {}}}`, "", `params.json:1: duplicate key "dpu" in peers: keep one of them`},
	} {
		_, err := contacted(t, "", tc.file, "", tc.name)
		if err == nil || !strings.HasPrefix(err.Error(), tc.sentence) {
			t.Errorf("%s %q: %v, want %s", tc.file, tc.name, err, tc.sentence)
		}
	}
}
