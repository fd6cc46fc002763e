package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/ls"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/ping"
	"github.com/dma-copy/dma-copy/internal/cli/serve"
	"github.com/dma-copy/dma-copy/internal/cli/transfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

// No option of push, pull and sync may speak of a peer that runs the same command.
func TestHelpOfTransfers(t *testing.T) {
	for kind := transfer.Push; kind <= transfer.Sync; kind++ {
		for _, opt := range (&transfer.Settings{Kind: kind}).Table() {
			for _, word := range []string{"Sender", "Receiver", "-f -", "FILE, if", "reference"} {
				if strings.Contains(opt.Help, word) {
					t.Errorf("%s: the help of --%s says %q", kind, opt.Name, word)
				}
			}
		}
	}
}

// transferred returns the settings of a command line of push, pull or sync.
func transferred(t *testing.T, kind transfer.Kind, line string, args ...string) (*transfer.Settings, error) {
	t.Helper()
	s := &transfer.Settings{Kind: kind}
	err := load(s, nil, words(line)...)
	if err == nil {
		err = s.SetPaths(args)
	}
	if err == nil {
		err = s.Validate()
	}
	return s, err
}

// refusedTransfer is a command line of push, pull or sync, and how its error begins.
type refusedTransfer struct {
	kind                 transfer.Kind
	line, args, sentence string
}

func mustRefuseTransfers(t *testing.T, list []refusedTransfer) {
	t.Helper()
	for _, tc := range list {
		_, err := transferred(t, tc.kind, tc.line, words(tc.args)...)
		if err == nil || !strings.HasPrefix(err.Error(), tc.sentence) {
			t.Errorf("%s %s %s: %v, want %s", tc.kind, tc.line, tc.args, err, tc.sentence)
		}
	}
}

func TestTransferPaths(t *testing.T) {
	for _, tc := range []struct {
		kind   transfer.Kind
		args   string
		sends  bool
		local  string
		remote []share.Remote
	}{
		{transfer.Push, "a :in", true, "a", []share.Remote{{Share: "in"}}},
		{transfer.Push, "a b/c ./x:y dpu:in/sub/", true, "a b/c ./x:y",
			[]share.Remote{{Peer: "dpu", Share: "in", Path: "sub/"}}},
		{transfer.Push, "- :in/name", true, "-", []share.Remote{{Share: "in", Path: "name"}}},
		{transfer.Pull, ":in/a .", false, ".", []share.Remote{{Share: "in", Path: "a"}}},
		{transfer.Pull, "dpu:in/a dpu:in/b out/", false, "out/",
			[]share.Remote{{Peer: "dpu", Share: "in", Path: "a"}, {Peer: "dpu", Share: "in", Path: "b"}}},
		{transfer.Pull, ":in/a -", false, "-", []share.Remote{{Share: "in", Path: "a"}}},
		{transfer.Sync, "a :in", true, "a", []share.Remote{{Share: "in"}}},
		{transfer.Sync, ":in a", false, "a", []share.Remote{{Share: "in"}}},
	} {
		s, err := transferred(t, tc.kind, "", strings.Fields(tc.args)...)
		if err != nil {
			t.Errorf("%s %s: %v", tc.kind, tc.args, err)
			continue
		}
		if s.Sends != tc.sends || !slices.Equal(s.Local, strings.Fields(tc.local)) ||
			!slices.Equal(s.Remote, tc.remote) || s.Peer() != tc.remote[0] {
			t.Errorf("%s %s: sends %t, local %q, remote %+v", tc.kind, tc.args, s.Sends, s.Local, s.Remote)
		}
	}
}

func TestRefusedTransfers(t *testing.T) {
	const sum = "crc32c:00000000"
	mustRefuseTransfers(t, []refusedTransfer{
		{transfer.Push, "", "",
			"SRC and DST are missing: dma-copy push takes what to copy here and a share, as in SRC... :SHARE/PATH"},
		{transfer.Push, "", "a", "DST is missing: "},
		{transfer.Pull, "", ":in/a", "DST is missing: "},
		{transfer.Sync, "", "a b :in",
			`unexpected argument ":in": dma-copy sync takes SRC and DST, of which one is in a share`},
		{transfer.Push, "", "a b", `DST "b" is on this side: dma-copy push takes `},
		{transfer.Push, "", ":in/a :in", `SRC ":in/a" is in a share: dma-copy push takes `},
		{transfer.Pull, "", "a b", `SRC "a" is on this side: dma-copy pull takes `},
		{transfer.Pull, "", ":in/a :in/b", `DST ":in/b" is in a share: dma-copy pull takes `},
		{transfer.Pull, "", ":in/a b c", `SRC "b" is on this side: `},
		{transfer.Sync, "", "a b", "SRC and DST are on the same side: "},
		{transfer.Sync, "", ":in :out", "SRC and DST are on the same side: "},
		{transfer.Push, "", "a dpu:",
			`DST "dpu:": the share is missing; write dpu:SHARE/PATH, and see dma-copy ls dpu:`},
		{transfer.Push, "", "a :in/../b", `DST ":in/../b": `},
		{transfer.Push, "", "_ :in", `SRC "": an empty name; `},
		{transfer.Pull, "", "a:in/x b:in/x .", `the sources have different peers ("a:" and "b:"): `},
		{transfer.Push, "", "- a :in/x", "SRC - conflicts with several sources: "},
		{transfer.Push, "", "- :in", "SRC - has no name in DST "},
		{transfer.Push, "", "- :in/x/", "SRC - has no name in DST "},
		{transfer.Pull, "", ":in/a :in/b -", "DST - conflicts with several sources: "},
		{transfer.Sync, "", "- :in/a", "SRC - conflicts with sync: "},
		{transfer.Sync, "", ":in/a -", "DST - conflicts with sync: "},
		{transfer.Push, "--dry-run", "- :in/a", "SRC - conflicts with --dry-run: "},
		{transfer.Push, "--expect " + sum, "a b :in", "--expect " + sum + " conflicts with several sources: "},
		{transfer.Push, "--expect " + sum + " --digest sha256", "a :in",
			"--expect " + sum + " conflicts with --digest sha256: "},
		{transfer.Push, "--files-from x", "a b :in", "--files-from conflicts with several sources: "},
		{transfer.Sync, "--files-from x --delete", "a :in", "--files-from conflicts with --delete: "},
		{transfer.Sync, "--max-delete 3", "a :in", "--max-delete limits what --delete deletes: "},
		{transfer.Push, "--role host -r b1:00.1", "a :in", `--rep-pci "b1:00.1" conflicts with --role host: `},
		{transfer.Push, "-0", "a :in", "--null is for the list of --files-from: "},
		{transfer.Push, "--delete", "a :in", `unknown flag "--delete": `},
		{transfer.Sync, "--overwrite", "a :in", `unknown flag "--overwrite": `},
		{transfer.Push, "--file x", "a :in", `unknown flag "--file": `},
	})
}

func TestTransferOptions(t *testing.T) {
	s, err := transferred(t, transfer.Sync, "--delete --max-delete 10 --dry-run --exclude *.tmp --auth none --keys k "+
		"--trust-first --digest sha256", "a", ":in")
	if err != nil {
		t.Fatal(err)
	}
	if !s.Delete || s.MaxDelete != 10 || !s.DryRun || len(s.Filters) != 1 || s.Auth != contact.AuthNone ||
		s.Keys != "k" ||
		!s.TrustFirst || s.Options.Digest != digest.SHA256 || s.Options.Durability != wire.DurabilityFull ||
		s.File != "a" {
		t.Errorf("%+v", s)
	}
}

// Without a choice, authenticated peers compare a digest that nobody can forge.
func TestDigestOfTheService(t *testing.T) {
	for line, want := range map[string]digest.Algorithm{
		"":                            digest.BLAKE3,
		"--digest auto":               digest.BLAKE3,
		"--auth none":                 digest.CRC32C,
		"--auth none --digest sha256": digest.SHA256,
		"--digest crc32c":             digest.CRC32C,
		"--digest none":               digest.None,
		"--expect crc32c:00000000":    digest.CRC32C,
	} {
		for _, kind := range []transfer.Kind{transfer.Push, transfer.Pull, transfer.Sync} {
			args := map[transfer.Kind][]string{transfer.Push: {"a", ":in"}, transfer.Pull: {":in/a", "b"},
				transfer.Sync: {"a", ":in"}}[kind]
			s, err := transferred(t, kind, line, args...)
			if err != nil || s.Options.Digest != want {
				t.Errorf("%s %s: %s (%v), want %s", kind, line, s.Options.Digest, err, want)
			}
		}
		if strings.Contains(line, "--expect") { // which serve does not have
			continue
		}
		s, err := served(t, "", nil, "--share a=/a "+line)
		if err != nil || s.Options.Digest != want {
			t.Errorf("serve %s: %s (%v), want %s", line, s.Options.Digest, err, want)
		}
	}
	if c := mustLoad(t, nil, "-f", "x", "--digest", "auto"); c.Options.Digest != digest.CRC32C {
		t.Errorf("a copy without a daemon: %s", c.Options.Digest)
	}
}

func TestListPaths(t *testing.T) {
	for args, want := range map[string]string{
		"":          "PEER is missing: ",
		"a":         `PATH "a" is on this side: `,
		"a:x b:":    `the paths have different peers ("a:" and "b:"): `,
		":UP":       `PATH ":UP": "UP" is not a name of a share: `,
		":a/../b":   `PATH ":a/../b": a path below a share cannot contain "..": `,
		":":         "",
		"dpu:":      "",
		":a/b :a c": `PATH "c" is on this side: `,
		":a/b :c":   "",
	} {
		var s ls.Settings
		err := load(&s, nil, "-l")
		if err == nil {
			err = s.SetPaths(strings.Fields(args))
		}
		switch {
		case !s.Long || s.LogLevel != option.LevelWarning:
			t.Errorf("-l: %+v", s)
		case want == "" && (err != nil || len(s.Remote) != len(strings.Fields(args))):
			t.Errorf("%q: %v, %+v", args, err, s.Remote)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

func TestPingPeer(t *testing.T) {
	for _, tc := range []struct {
		line, args string
		daemon     bool
		peer       string
		sentence   string
	}{
		{line: "", args: ""},
		{args: ":", daemon: true},
		{args: "dpu", daemon: true, peer: "dpu"},
		{args: "dpu:", daemon: true, peer: "dpu"},
		{args: "dpu host", sentence: `unexpected argument "host": dma-copy ping takes one PEER or none`},
		{args: ":share", sentence: `PEER ":share": not a peer; `},
		{args: "dpu", line: "--path fast", sentence: "--path fast conflicts with PEER: "},
		{args: "dpu", line: "--role host -r b1:00.1", sentence: `--rep-pci "b1:00.1" conflicts with --role host: `},
	} {
		var s ping.Settings
		err := load(&s, nil, words(tc.line)...)
		if err == nil {
			err = s.SetPeer(strings.Fields(tc.args))
		}
		switch {
		case tc.sentence == "" && (err != nil || s.Daemon != tc.daemon || s.Remote.Peer != tc.peer):
			t.Errorf("%s: %v, daemon %t %q", tc.args, err, s.Daemon, s.Remote.Peer)
		case tc.sentence != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.sentence)):
			t.Errorf("%s: %v, want %s", tc.args, err, tc.sentence)
		}
	}
}

// served returns the settings of serve from a parameter file and a command line.
func served(t *testing.T, file string, variables map[string]string, line string) (*serve.Settings, error) {
	t.Helper()
	inNewDir(t, "serve.json", file)
	var s serve.Settings
	args := words(line)
	if file != "" {
		args = append(args, "-j", "serve.json")
	}
	err := load(&s, variables, args...)
	if err == nil {
		err = s.Validate()
	}
	return &s, err
}

func TestServeDefaults(t *testing.T) {
	s, err := served(t, "", nil, "--share in=/srv/in,rw,nooverwrite,max-bytes=1GiB")
	if err != nil {
		t.Fatal(err)
	}
	want := []share.Share{{Name: "in", Path: "/srv/in", Access: share.ReadWrite, NoOverwrite: true, MaxBytes: 1 << 30}}
	if !slices.Equal(s.Shares, want) || s.Auth != contact.AuthKeys || s.MaxConnections != 64 ||
		s.MaxKeyConnections != 16 ||
		s.MaxTransfers != 4 || s.MaxMemory != 1<<30 || s.DrainTimeout != 30*time.Second ||
		s.IdleTimeout != 30*time.Second || s.Options.Bandwidth != 0 || s.Metrics != "" || s.StatusPage ||
		s.AuditLog != "" {
		t.Errorf("%+v", s)
	}
}

// The group of serve precedes the flags of all programs in the same file, and is precedence of the file as a whole.
func TestServeFile(t *testing.T) {
	const file = `{
		"serve": {"share": ["a=/a", "b=/b,wo"], "rep-pci": ["b1:00.0", "b1:00.1"], "auth": "none", "bwlimit": "1M"},
		"doca_program_flags": {"rep-pci": "b1:00.7", "pci-addr": "03:00.1", "bwlimit": "2M"},
	}`
	s, err := served(t, file, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Shares) != 2 || s.Shares[1].Access != share.Write || s.Auth != contact.AuthNone ||
		s.Options.Bandwidth != 1<<20 ||
		s.Device != "03:00.1" || !slices.Equal(s.Representors, []string{"b1:00.0", "b1:00.1"}) {
		t.Errorf("%+v", s)
	}
	s, err = served(t, file, nil, "--share c=/c -r b1:00.3 --bwlimit 3M")
	if err != nil || len(s.Shares) != 1 || s.Shares[0].Name != "c" || s.Options.Bandwidth != 3<<20 ||
		!slices.Equal(s.Representors, []string{"b1:00.3"}) {
		t.Errorf("with flags: %v, %+v", err, s)
	}
	// A copy has one representor only, and none of what is for serve.
	c := mustLoad(t, nil, "-f", "x", "-j", "serve.json")
	if c.Representor != "b1:00.7" || c.Options.Bandwidth != 2<<20 {
		t.Errorf("a copy: %+v", c)
	}
}

// A representor in the flags of all programs is one of serve, too.
func TestServeWithTheRepresentorOfACopy(t *testing.T) {
	s, err := served(t, `{"doca_program_flags": {"rep-pci": "b1:00.1"}, "serve": {"share": "a=/a"}}`, nil, "")
	if err != nil || !slices.Equal(s.Representors, []string{"b1:00.1"}) {
		t.Errorf("%v, %+v", err, s.Representors)
	}
	s, err = served(t, "", map[string]string{"DMA_COPY_SHARE": "a=/a\nb=/b", "DMA_COPY_REP_PCI": "x"}, "")
	if err != nil || len(s.Shares) != 2 || !slices.Equal(s.Representors, []string{"x"}) {
		t.Errorf("by variables: %v, %+v", err, s)
	}
}

func TestRefusedServe(t *testing.T) {
	for _, tc := range []struct{ file, line, sentence string }{
		{"", "", "--share is missing: name a directory that peers may use, as in --share inbox=/srv/inbox,rw"},
		{"", "--share a", `--share "a": not a share: `},
		{"", "--share a=/a,rx", `--share "a=/a,rx": not a share: `},
		{"", "--share a=/a --share a=/b", "--share a is given twice: give each share a name of its own"},
		{"", "--share a=/a --role host -r b1:00.1", `--rep-pci "b1:00.1" conflicts with --role host: `},
		{"", "--share a=/a --cores 0 --numa 0", "--cores 0 conflicts with --numa 0: "},
		{"", "--share a=/a --metrics :9469", `--metrics ":9469": not an address; `},
		{"", "--share a=/a --metrics 0.0.0.0:9469", `--metrics "0.0.0.0:9469": not a loopback address; `},
		{"", "--share a=/a --metrics unix:", `--metrics "unix:": an empty name; `},
		{"", "--share a=/a --status-page", "--status-page needs an address: give --metrics 127.0.0.1:9469, or "},
		{"", "--share a=/a --max-connections 0", `--max-connections "0": give a whole number from 1 to 2147483647`},
		{"", "--share a=/a --max-transfers -1", `--max-transfers "-1": give a whole `},
		{"", "--share a=/a --auth maybe", `--auth "maybe": not one of the choices; give keys or none`},
		{"", "--share a=/a --drain-timeout -1s", `--drain-timeout "-1s": a duration cannot be negative; `},
		{`{"serve": {"shares": "a=/a"}}`, "", `serve.json:1: unknown key "shares" in serve: did you mean "share"?`},
		{`{"serve": {"share": {"a": "/a"}}}`, "",
			`serve.json:1: "share" in serve must be a string or an array of strings, not an object`},
		{"{\"serve\": {\n\"share\": [\"a=/a\", \"b\"]}}", "", `serve.json:2: share "b": not a share: `},
		{`{"serve": {"json": "x"}}`, "", `serve.json:1: unknown key "json" in serve: it goes on the command line`},
		{`{"serve": {"file": "x"}}`, "", `serve.json:1: unknown key "file" in serve: it belongs in doca_program_flags`},
		{`{"doca_program_flags": {"share": "a=/a"}}`, "",
			`serve.json:1: unknown key "share" in doca_program_flags: it belongs in serve`},
		{`{"serve": []}`, "", "serve.json:1: serve must be an object, not an array"},
		{`{"share": ["a=/a"]}`, "", `serve.json:1: unknown group "share": it belongs in serve`},
	} {
		if _, err := served(t, tc.file, nil, tc.line); err == nil || !strings.HasPrefix(err.Error(), tc.sentence) {
			t.Errorf("%s %s: %v, want %s", tc.file, tc.line, err, tc.sentence)
		}
	}
}

func TestStatusPage(t *testing.T) {
	s, err := served(t, "", nil, "--share a=/a --metrics unix:/run/x.sock --status-page")
	if err != nil || !s.StatusPage {
		t.Errorf("%v, %+v", err, s)
	}
}
