package ucx

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func TestParseResources(t *testing.T) {
	const text = `#
# UCP context
#
#     component 0  :  self
#     component 1  :  tcp
#            md 0  :  component 1  tcp 
#
#      resource 0  :  md 0  dev 0  flags -- tcp/lo
#      resource 1  :  md 0  dev 1  flags -- tcp/eth0
#      resource 2  :  md 1  dev 2  flags -s rc_mlx5/mlx5_0:1
#      resource
# memory: 1.41MB, file descriptors: 5
`
	got := parseResources(text)
	want := []Resource{{"tcp", "lo"}, {"tcp", "eth0"}, {"rc_mlx5", "mlx5_0:1"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseTransports(t *testing.T) {
	const prefix = "#\n# UCP endpoint \n#\n#               peer: <no debug data>\n"
	for text, want := range map[string]string{
		"": "",
		prefix + "#  lane[0]:  0:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] am am_bw#0 wireup\n": "tcp/lo",
		prefix + "#  lane[0]:  3:rc_mlx5/mlx5_0:1.0 md[1]  -> md[1]/ib/sysdev[0] rma_bw#0 am\n" +
			"#  lane[1]:  3:rc_mlx5/mlx5_1:1.0 md[1]  -> md[1]/ib/sysdev[0] rma_bw#1\n" +
			"#  lane[2]:  4:ud_mlx5/mlx5_0:1.0 md[1] -> md[1]/ib wireup\n": "rc_mlx5/mlx5_0:1,rc_mlx5/mlx5_1:1",
		prefix + "#  lane[0]:  2:ud_verbs/eth1.5.0 md[1] -> md[1] wireup\n": "ud_verbs/eth1.5",
		prefix + "#  lane[0]:  <none>\n":                                    "<none>",
		"lane[0]: \n# lane[\n":                                              "",
	} {
		if got := parseTransports(text); got != want {
			t.Errorf("got %q, want %q, of\n%s", got, want, text)
		}
	}
}

func TestResourceIsRDMA(t *testing.T) {
	for transport, want := range map[string]bool{
		"rc_verbs": true, "rc_mlx5": true, "dc_mlx5": true, "ud_verbs": true, "rc": true,
		"tcp": false, "posix": false, "cma": false, "self": false, "rcx": false, "": false,
	} {
		if got := (Resource{Transport: transport}).RDMA(); got != want {
			t.Errorf("%q: %v", transport, got)
		}
	}
}

func TestRDMAPorts(t *testing.T) {
	directory := t.TempDir()
	for name, content := range map[string]string{
		"mlx5_0/ports/1/state":             "4: ACTIVE\n",
		"mlx5_0/ports/1/link_layer":        "Ethernet\n",
		"mlx5_0/ports/1/gids/0":            "fe80:0000:0000:0000:5054:00ff:fe12:3456\n",
		"mlx5_0/ports/1/gids/1":            "0000:0000:0000:0000:0000:0000:0000:0000\n",
		"mlx5_0/ports/1/gids/3":            "0000:0000:0000:0000:0000:ffff:0a00:0002\n",
		"mlx5_0/ports/1/gid_attrs/types/3": "RoCE v2\n",
		"mlx5_0/ports/1/gid_attrs/ndevs/0": "eth0\n",
		"mlx5_0/device/vendor":             "0x15b3\n",
		"mlx5_1/device/vendor":             "0x15b3\n",
		"mlx5_1/ports/2/state":             "1: DOWN\n",
		"mlx5_1/ports/2/link_layer":        "InfiniBand\n",
		"mlx5_1/ports/none/state":          "4: ACTIVE\n",
		"rxe0/ports/1/state":               "4: ACTIVE\n",
	} {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []Port{
		{Device: "mlx5_0", Number: 1, Active: true, State: "ACTIVE", LinkLayer: "Ethernet", NetDevice: "eth0",
			GIDs: map[int]GID{
				0: {Address: "fe80:0000:0000:0000:5054:00ff:fe12:3456"},
				3: {Address: "0000:0000:0000:0000:0000:ffff:0a00:0002", Type: "RoCE v2"},
			}},
		{Device: "mlx5_1", Number: 2, State: "DOWN", LinkLayer: "InfiniBand", GIDs: map[int]GID{}},
		{Device: "rxe0", Number: 1, Active: true, State: "ACTIVE", GIDs: map[int]GID{}, Software: true},
	}
	if got := rdmaPorts(directory); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if name := want[0].Name(); name != "mlx5_0:1" {
		t.Errorf("name %q", name)
	}
	if got := rdmaPorts(filepath.Join(directory, "missing")); len(got) != 0 {
		t.Errorf("got %+v without a directory", got)
	}
}
