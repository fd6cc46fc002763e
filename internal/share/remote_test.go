package share_test

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/share"
)

func TestRemotes(t *testing.T) {
	for text, want := range map[string]share.Remote{
		":":                        {},
		"dpu:":                     {Peer: "dpu"},
		":images":                  {Share: "images"},
		":images/":                 {Share: "images"},
		":images/.":                {Share: "images", Path: "."},
		"dpu:images/a":             {Peer: "dpu", Share: "images", Path: "a"},
		"dpu:images/a/":            {Peer: "dpu", Share: "images", Path: "a/"},
		"dpu:images/a/.":           {Peer: "dpu", Share: "images", Path: "a/."},
		"d-1.x_:i/./a//b/./":       {Peer: "d-1.x_", Share: "i", Path: "a/b/."},
		":images//a":               {Share: "images", Path: "a"},
		":images/a:b/c":            {Share: "images", Path: "a:b/c"},
		":i/...":                   {Share: "i", Path: "..."},
		":i/a\xffb":                {Share: "i", Path: "a\xffb"},
		":i/.x.dma-copy-part.done": {Share: "i", Path: ".x.dma-copy-part.done"},

		"ucx://lab":                       {Address: "lab:7483"},
		"ucx://lab/":                      {Address: "lab:7483"},
		"ucx://lab/images":                {Address: "lab:7483", Share: "images"},
		"ucx://lab/images/":               {Address: "lab:7483", Share: "images"},
		"ucx://10.0.0.2:1/images/a":       {Address: "10.0.0.2:1", Share: "images", Path: "a"},
		"ucx://lab.example.:65535/i/./a/": {Address: "lab.example.:65535", Share: "i", Path: "a/"},
		"ucx://[::1]/i":                   {Address: "[::1]:7483", Share: "i"},
		"ucx://[::1]:7447/i/a:b":          {Address: "[::1]:7447", Share: "i", Path: "a:b"},
		"ucx://[fe80::1%eth0]:7/i/a%20b?": {Address: "[fe80::1%eth0]:7", Share: "i", Path: "a%20b?"},
		"ucx://10.0.0.2/i//a":             {Address: "10.0.0.2:7483", Share: "i", Path: "a"},
	} {
		got, remote, err := share.ParseRemote(text)
		if err != nil || !remote || got != want {
			t.Errorf("%q is %+v, %t, %v, want %+v", text, got, remote, err, want)
		}
		if again, _, err := share.ParseRemote(got.String()); err != nil || again != got {
			t.Errorf("%q is %+v, %v", got, again, err)
		}
	}
}

func TestLocalPaths(t *testing.T) {
	for _, text := range []string{"", "-", ".", "/", "file", "./a:b", "/a:b", "dir/a:b", "../x:y", "./C:/Users", "/:"} {
		if got, remote, err := share.ParseRemote(text); remote || err != nil || got != (share.Remote{}) {
			t.Errorf("%q is %+v, %t, %v", text, got, remote, err)
		}
	}
}

func TestWrongRemotes(t *testing.T) {
	const local = `a file of this machine whose name contains a colon is written "./`
	for text, want := range map[string]string{
		`C:\Users\x`:                       `"C" before the colon is not the name of a peer`,
		"C:/Users/x":                       `"C" before the colon is not the name of a peer`,
		"c:/Users/x":                       "there is no share between the colon and the slash",
		":/etc/passwd":                     "there is no share between the colon and the slash",
		"03:00.1":                          "",
		"0000:03:00.0":                     `"03:00.0" is not a name of a share`,
		"http://x":                         "unknown scheme http://: write ucx://HOST:PORT/SHARE/PATH",
		"UCX://x/i":                        "unknown scheme UCX://",
		"ucx://":                           `"" is not the name or IP address of a machine`,
		"ucx:///i":                         `"" is not the name or IP address of a machine`,
		"ucx://:7483/i":                    `"" is not the name or IP address of a machine`,
		"ucx://user@lab/i":                 `"user@lab" is not the name or IP address`,
		"ucx://la b/i":                     `"la b" is not the name or IP address`,
		"ucx://-lab/i":                     "is not the name or IP address",
		"ucx://lab:/i":                     `"" is not a port`,
		"ucx://lab:0/i":                    `"0" is not a port`,
		"ucx://lab:65536/i":                `"65536" is not a port: give a number from 1 to 65535`,
		"ucx://lab:+1/i":                   `"+1" is not a port`,
		"ucx://lab:http/i":                 `"http" is not a port`,
		"ucx://::1/i":                      "an IPv6 address has brackets",
		"ucx://fe80::1:7483/i":             "an IPv6 address has brackets",
		"ucx://[::1/i":                     "the bracket of an IPv6 address is not closed",
		"ucx://[10.0.0.2]/i":               `"10.0.0.2" is not an IPv6 address`,
		"ucx://[lab]/i":                    `"lab" is not an IPv6 address`,
		"ucx://[::1]x/i":                   "not closed",
		"ucx://[::1%a\nb]/i":               "is not an IPv6 address",
		"ucx://lab//i":                     "there is no share behind the address",
		"ucx://lab//":                      "there is no share behind the address",
		"ucx://lab/Images/a":               `"Images" is not a name of a share`,
		"ucx://lab/i/../x":                 `cannot contain ".."`,
		"a b:c":                            `"a b" before the colon`,
		"12:30 backup":                     local,
		":Images":                          local,
		":i/../x":                          `cannot contain ".."`,
		":i/..":                            `cannot contain ".."`,
		":i/a/../b":                        `cannot contain ".."`,
		":i/a\x00b":                        "zero byte",
		":i/.x.dma-copy-part":              "reserved for unfinished files",
		":i/.x.dma-copy-journal/a":         "reserved for unfinished files",
		":i/" + strings.Repeat("a/", 2049): "at most 4096 bytes",
		strings.Repeat("p", 65) + ":i":     "is not the name of a peer",
		":" + strings.Repeat("p", 65):      "the longest has 64 characters",
		"file:with:colons/x":               local,
		"-:x":                              "is not the name of a peer",
		":.":                               local,
		":..":                              local,
	} {
		got, remote, err := share.ParseRemote(text)
		if want == "" {
			if err != nil || !remote {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err == nil || !remote || got != (share.Remote{}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %t, %v, want %q", text, got, remote, err, want)
		}
	}
}

// FuzzRemote checks ParseRemote against its rule, and that paths are clean.
func FuzzRemote(f *testing.F) {
	for _, text := range []string{
		"dpu:images/a/b", ":", ":i/", "./a:b", "C:/x", ":i/..", ":i/a/./b//", "a:b:c/d", ":i/\x00", "x/y:z",
		":i/.a.dma-copy-new", "ucx://lab:1/i/a", "ucx://[::1%x]/i/", "ucx://lab", "http://lab/i",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, remote, err := share.ParseRemote(text)
		before, _, _ := strings.Cut(text, "/")
		if remote != strings.Contains(before, ":") || err != nil && !remote {
			t.Fatalf("%q is remote: %t, %v", text, remote, err)
		}
		if err != nil || !remote {
			return
		}
		if r.Peer != "" && share.CheckName(r.Peer) != nil || r.Share != "" && share.CheckName(r.Share) != nil {
			t.Fatalf("%q has a name that is not valid: %+v", text, r)
		}
		if again, _, err := share.ParseRemote(r.String()); err != nil || again != r {
			t.Fatalf("%q is %+v, %v, and not %+v", r.String(), again, err, r)
		}
		mustBeClean(t, r.Path)
		_, path, _ := strings.Cut(text, "/")
		if r.Address != "" {
			mustBeAddress(t, r.Address)
			_, path, _ = strings.Cut(strings.TrimPrefix(text, "ucx://"), "/")
			_, path, _ = strings.Cut(path, "/")
		}
		if got, want := components(r.Path), components(path); !slices.Equal(got, want) {
			t.Fatalf("%q has %q, not %q", text, got, want)
		}
	})
}

func mustBeAddress(t *testing.T, address string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if number, badPort := strconv.Atoi(port); err != nil || badPort != nil || number < 1 || number > 65535 ||
		host == "" || strings.ContainsAny(host, " /@[]\x00\n") {
		t.Fatalf("%q is not an address: %v", address, err)
	}
}

func TestListenAddresses(t *testing.T) {
	for text, want := range map[string]string{
		":7483": "[::]:7483", ":1": "[::]:1", "127.0.0.1": "127.0.0.1:7483", "[::1]": "[::1]:7483",
		"0.0.0.0:65535": "0.0.0.0:65535", "[fe80::1%eth0]:2": "[fe80::1%eth0]:2",
	} {
		if got, err := share.ParseListen(text); err != nil || got.String() != want {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "an address is missing", "lab:1": `"lab" is not an IP address of this machine`, "::1": "has brackets",
		"127.0.0.1:0": `"0" is not a port`, "127.0.0.1:x": `"x" is not a port`, "[::1": "is not closed",
		"[127.0.0.1]:1": "is not an IPv6 address", "7483": `"7483" is not an IP address`,
		"ucx://:7483": "ucx:// is for the arguments of commands: ", "ucx://127.0.0.1/": "or :PORT for all addresses",
	} {
		if got, err := share.ParseListen(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
}

// components returns those that are names.
func components(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" || name == "." })
}

func mustBeClean(t *testing.T, path string) {
	t.Helper()
	inner := strings.TrimSuffix(strings.TrimSuffix("/"+path, "/."), "/")
	for name := range strings.SplitSeq(strings.TrimPrefix(inner, "/"), "/") {
		if inner != "" && (name == "" || name == "." || name == ".." || strings.Contains(name, "\x00")) {
			t.Fatalf("%q is not clean", path)
		}
	}
	if again, err := share.CleanPath(path); err != nil || again != path {
		t.Fatalf("%q becomes %q, %v", path, again, err)
	}
}
