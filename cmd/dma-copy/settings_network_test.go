package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/ls"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/ping"
	"github.com/dma-copy/dma-copy/internal/cli/transfer"
	"github.com/dma-copy/dma-copy/internal/share"
)

func TestServeNetwork(t *testing.T) {
	s, err := served(t, "", nil, "--share a=/a --listen 10.0.0.1 --path tls,am --net-devices mlx5_0:1,eth0 "+
		"--traffic-class 104 --ack-timeout 100ms --ack-retries 3 --gid-index 3 --device-memory 2KiB")
	if err != nil {
		t.Fatal(err)
	}
	n := s.Network
	if s.Listen.String() != "10.0.0.1:7483" || !s.ServesNetwork() || s.ServesDevice() ||
		!slices.Equal(s.NetworkPaths(), []device.Path{device.PathTLS, device.PathMessages}) ||
		!slices.Equal(n.NetDevices, []string{"mlx5_0:1", "eth0"}) || n.TrafficClass != 104 ||
		n.AckTimeout != 100*time.Millisecond || n.AckRetries != 3 || *n.GIDIndex != 3 || n.DeviceMemory != 2048 {
		t.Errorf("%+v", s)
	}
}

// What a daemon serves, and by which paths, follows from --listen, the device and --path.
func TestWhatIsServed(t *testing.T) {
	for line, want := range map[string]struct {
		device  bool
		path    device.Path
		serves  bool // other machines
		network []device.Path
	}{
		"":                                  {true, device.PathAuto, false, []device.Path{device.PathTLS}},
		"-r b1:00.1 --path fast":            {true, device.PathFast, false, []device.Path{device.PathTLS}},
		"--path dma,fast":                   {true, device.PathAuto, false, []device.Path{device.PathTLS}},
		"--listen :1":                       {false, device.PathAuto, true, []device.Path{device.PathTLS}},
		"--listen :1 --path auto":           {false, device.PathAuto, true, []device.Path{device.PathTLS}},
		"--listen :1 --path rma":            {false, device.PathAuto, true, []device.Path{device.PathRMA}},
		"--listen :1 --encrypt":             {false, device.PathAuto, true, []device.Path{device.PathTLS}},
		"--listen :1 --driver ucx":          {false, device.PathAuto, true, []device.Path{device.PathTLS}},
		"--listen :1 -p 03:00.1":            {true, device.PathAuto, true, []device.Path{device.PathTLS}},
		"--listen :1 -r b1:00.1 --path dma": {true, device.PathDMA, true, []device.Path{device.PathTLS}},
		"--listen :1 -p x --path am,fast,tls": {true, device.PathFast, true, []device.Path{device.PathTLS,
			device.PathMessages}},
		"--listen :1 --path tcp,tls": {false, device.PathAuto, true, []device.Path{device.PathTLS,
			device.PathTCP}},
		"--listen [::1]:1 --auth none":     {false, device.PathAuto, true, []device.Path{device.PathTLS}},
		"--listen 127.0.0.1:1 --auth none": {false, device.PathAuto, true, []device.Path{device.PathTLS}},
	} {
		s, err := served(t, "", nil, "--share a=/a "+line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if s.ServesDevice() != want.device || s.DevicePath() != want.path ||
			s.ServesNetwork() != want.serves ||
			!slices.Equal(s.NetworkPaths(), want.network) {
			t.Errorf("%s: device %t by %s, network %t by %s", line, s.ServesDevice(), s.DevicePath(), s.ServesNetwork(),
				s.NetworkPaths())
		}
	}
}

// A daemon that was not told to use UCX does not, and keeps the sandbox without it.
func TestUseOfUCX(t *testing.T) {
	for line, want := range map[string]bool{
		"":                            false,
		"--listen :1":                 false,
		"--listen :1 --path tls":      false,
		"--listen :1 --path tls,tcp":  false,
		"--listen :1 --encrypt":       false,
		"--listen :1 --driver ucx":    false,
		"--listen :1 -p x --path dma": false,
		"--listen :1 --path tls,rma":  true,
		"--listen :1 --path am":       true,
	} {
		if s, err := served(t, "", nil, "--share a=/a "+line); err != nil || s.UsesUCX() != want {
			t.Errorf("%s: %v, %t", line, err, s.UsesUCX())
		}
	}
}

func TestRefusedNetworkSettings(t *testing.T) {
	for line, sentence := range map[string]string{
		"--listen x":                           `--listen "x": not an address: "x" is not an IP address`,
		"--listen 1.2.3.4:0":                   `--listen "1.2.3.4:0": not an address: "0" is not a port`,
		"--path tls":                           "--path tls is for connections with other machines: give --listen",
		"--listen :1 --path tls,dma":           "--path dma is for devices, and --listen alone serves none: ",
		"--listen :1 --path fast,x":            `--path "fast,x": "x": not one of the choices`,
		"--listen :1 --path auto,tls":          `--path "auto,tls": "auto": not one of the choices`,
		"--listen :1 --encrypt --path rma":     "--encrypt conflicts with --path rma: only tls encrypts file data",
		"--listen :1 --encrypt --path tls,am":  "--encrypt conflicts with --path am: ",
		"--listen :1 --encrypt --path tls,tcp": "--encrypt conflicts with --path tcp: only tls encrypts file data",
		"--path tcp":                           "--path tcp is for connections with other machines: give --listen",
		"--listen :1 --encrypt -p 03:00.1":     "--encrypt conflicts with serving a device: ",
		"--encrypt":                            "--encrypt conflicts with serving a device: ",
		"--driver ucx":                         "--driver ucx is for daemons on other machines ",
		"--driver ucx --listen :1 -p 03:00.1":  "--driver ucx is for daemons on other machines ",
		"--require-hw --listen :1":             "--require-hw refuses the software device, and ",
		"--auth none --listen :1":              "--auth none with --listen [::]:1 would serve anybody ",
		"--auth none --listen 10.0.0.2:1":      "--auth none with --listen 10.0.0.2:1 would serve anybody ",
		"--listen :1 --net-devices a,,b":       `--net-devices "a,,b": "": not a network device; `,
		"--listen :1 --net-devices ../x":       `--net-devices "../x": "../x": not a network device; `,
		"--listen :1 --net-devices mlx5_0:1:2": `not a network device; `,
		"--listen :1 --traffic-class 256":      `--traffic-class "256": give a whole number from 0 to 255`,
		"--listen :1 --traffic-class 0x10":     `give a whole number from 0 to 255`,
		"--listen :1 --ack-timeout 1h":         `--ack-timeout "1h": out of range; give at most 10m0s`,
		"--listen :1 --ack-timeout -1s":        `--ack-timeout "-1s": out of range; `,
		"--listen :1 --ack-retries 7":          `--ack-retries "7": give a whole number from 0 to 6`,
		"--listen :1 --gid-index -1":           `--gid-index "-1": give a whole number from 0 to 255`,
		"--listen :1 --gid-index 256":          `--gid-index "256": give a whole number from 0 to 255`,
		"--listen :1 --device-memory 1X":       `--device-memory "1X": not a size; `,
		"--listen :1 --path tls,b":             `"b": not one of the choices`,
	} {
		if _, err := served(t, "", nil, "--share a=/a "+line); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: %v, want %s", line, err, sentence)
		}
	}
}

// A daemon that also serves a device may insist on its hardware.
func TestRequireHardwareBesideTheNetwork(t *testing.T) {
	if _, err := served(t, "", nil, "--share a=/a --require-hw --listen :1 -p 03:00.1"); err != nil {
		t.Error(err)
	}
}

// A path and --encrypt fit the kind of connection, which is known with the peer.
func TestPathsOfTransfers(t *testing.T) {
	const device, network = false, true
	for _, tc := range []struct {
		line     string
		network  bool
		sentence string
	}{
		{"", device, ""}, {"", network, ""}, {"--path dma", device, ""}, {"--path fast", device, ""},
		{"--path tls", network, ""}, {"--path tcp", network, ""}, {"--path am", network, ""},
		{"--path rma", network, ""},
		{"--encrypt", network, ""}, {"--encrypt --path tls", network, ""},
		{"--path dma", network, "--path dma is for devices: to another machine give auto, tls, tcp, am or rma"},
		{"--path rma", device, "--path rma is for daemons on other machines (ucx://HOST:PORT/SHARE/PATH): "},
		{"--encrypt", device, "--encrypt is for daemons on other machines: "},
		{"--encrypt --path tcp", network, "--encrypt conflicts with --path tcp: only tls encrypts file data"},
		{"--encrypt --path rma", network, "--encrypt conflicts with --path rma: only tls encrypts file data"},
		{"--encrypt --path fast", network, "--path fast is for devices: "},
	} {
		s, err := transferred(t, transfer.Push, tc.line, "a", ":in")
		if err != nil {
			t.Fatal(err)
		}
		err = s.ValidateFor(tc.network)
		if tc.sentence == "" && err != nil || tc.sentence != "" &&
			(err == nil || !strings.HasPrefix(err.Error(), tc.sentence)) {
			t.Errorf("%s, network %t: %v, want %q", tc.line, tc.network, err, tc.sentence)
		}
	}
	mustRefuse(t, loadCopy(nil, "-f", "x", "--path", "am"), "--path am is for daemons on other machines "+
		"(ucx://HOST:PORT/SHARE/PATH): over a device give auto, dma or fast")
}

const networkPeers = `{"peers": {
	"lab": {"address": "10.0.0.2", "key": "the lab's"},
	"dpu": {"device": "b1:00.1"},
}}`

// chosen returns the peer that ls chooses for an argument.
func chosen(t *testing.T, file, line, argument string) (option.Peer, error) {
	t.Helper()
	inNewDir(t, "params.json", file)
	var s ls.Settings
	if err := load(&s, nil, append(words(line), "-j", "params.json")...); err != nil {
		return option.Peer{}, err
	}
	if err := s.SetPaths([]string{argument}); err != nil {
		return option.Peer{}, err
	}
	return s.Choose(s.Remote[0], s.Device, s.Representor)
}

func TestNetworkPeers(t *testing.T) {
	lab := option.Peer{Address: "10.0.0.2:7483", Key: "the lab's", Origin: "params.json:2"}
	for _, tc := range []struct {
		line, argument string
		want           option.Peer
		sentence       string
	}{
		{argument: "lab:", want: lab},
		{argument: "ucx://10.0.0.2/", want: lab},
		{argument: "ucx://10.0.0.2:7483/in/a", want: lab},
		{argument: "ucx://10.0.0.2:1", want: option.Peer{Address: "10.0.0.2:1"}},
		{argument: "ucx://other/in", want: option.Peer{Address: "other:7483"}},
		{argument: "dpu:", want: option.Peer{Device: "b1:00.1", Origin: "params.json:3"}},
		{"--auth none", "ucx://localhost:1/in", option.Peer{Address: "localhost:1"}, ""},
		{"--auth none", "ucx://[::1]:1/in", option.Peer{Address: "[::1]:1"}, ""},
		{"--auth none", "ucx://127.8.0.1:1/in", option.Peer{Address: "127.8.0.1:1"}, ""},
		{"--auth none", "lab:", lab, "--auth none with ucx://10.0.0.2:7483: anybody on the network could be "},
		{"--auth none", "ucx://localhost.example/", option.Peer{}, "--auth none with ucx://localhost.example:7483: "},
		{"-p x", "lab:", lab, "-p and -r name a device, and ucx://10.0.0.2:7483 is on another machine: "},
		{"-r x", "ucx://other/", option.Peer{},
			"-p and -r name a device, and ucx://other:7483 is on another machine: "},
	} {
		got, err := chosen(t, networkPeers, tc.line, tc.argument)
		switch {
		case tc.sentence == "" && (err != nil || got != tc.want):
			t.Errorf("%s %s: %+v, %v, want %+v", tc.line, tc.argument, got, err, tc.want)
		case tc.sentence != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.sentence)):
			t.Errorf("%s %s: %v, want %s", tc.line, tc.argument, err, tc.sentence)
		}
	}
	for file, sentence := range map[string]string{
		`{"peers": {"a": {"address": "x:y"}}}`:              `params.json:1: address "x:y": not an address: `,
		`{"peers": {"a": {"address": "x", "device": "y"}}}`: "params.json:1: peer a has an address and a device: ",
	} {
		if _, err := chosen(t, file, "", "a:"); err == nil || !strings.HasPrefix(err.Error(), sentence) {
			t.Errorf("%s: %v, want %s", file, err, sentence)
		}
	}
}

func TestPingAddress(t *testing.T) {
	var s ping.Settings
	want := share.Remote{Address: "[::1]:1"}
	if err := s.SetPeer([]string{"ucx://[::1]:1/"}); err != nil || !s.Daemon || s.Remote != want {
		t.Errorf("%v, %+v", err, s.Remote)
	}
	for argument, sentence := range map[string]string{
		"ucx://lab/in":  `PEER "ucx://lab/in": a daemon has no share here; write ucx://lab:7483/`,
		"ucx://lab:x":   `PEER "ucx://lab:x": "x" is not a port`,
		"http://lab/in": `PEER "http://lab/in": not a peer; `,
	} {
		if err := s.SetPeer([]string{argument}); err == nil || !strings.HasPrefix(err.Error(), sentence) {
			t.Errorf("%s: %v, want %s", argument, err, sentence)
		}
	}
}
