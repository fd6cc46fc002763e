package main

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/cli/serve"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// What the user chooses has precedence; no option chooses a transport of UCX.
func TestUCXSettings(t *testing.T) {
	timeout, retries := ucx.AckFor(20 * time.Second)
	index := 3
	for name, c := range map[string]struct {
		given ucx.Settings
		want  ucx.Settings
	}{
		"nothing": {ucx.Settings{},
			ucx.Settings{AckTimeout: timeout, AckRetries: retries}},
		"everything": {
			ucx.Settings{NetDevices: []string{"mlx5_0:1"}, TrafficClass: 104, AckTimeout: time.Second, AckRetries: 6,
				GIDIndex: &index, DeviceMemory: 2048},
			ucx.Settings{NetDevices: []string{"mlx5_0:1"}, TrafficClass: 104, AckTimeout: time.Second, AckRetries: 6,
				GIDIndex: &index, DeviceMemory: 2048},
		},
		"the first entry": {ucx.Settings{GIDIndex: new(int)},
			ucx.Settings{AckTimeout: timeout, AckRetries: retries, GIDIndex: new(int)}},
	} {
		if got := connect.NetworkSettings(c.given, 20*time.Second, 0).UCX; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDeviceMemoryWithoutADevice(t *testing.T) {
	card, softRoCE := ucx.Port{Device: "mlx5_0"}, ucx.Port{Device: "rxe0", Software: true}
	for name, c := range map[string]struct {
		size  int64
		ports []ucx.Port
		want  bool
	}{
		"not asked for": {0, nil, false},
		"no device":     {2048, nil, true},
		"soft-RoCE":     {2048, []ucx.Port{softRoCE}, true},
		"a card":        {2048, []ucx.Port{softRoCE, card}, false},
	} {
		var log strings.Builder
		connect.WarnOfDeviceMemory(ucx.Settings{DeviceMemory: c.size}, c.ports,
			zerolog.New(&log))
		if got := strings.Contains(log.String(), "--device-memory has no effect"); got != c.want {
			t.Errorf("%s: logged %q", name, log.String())
		}
	}
}

// A path that does not work is left before the idle timeout ends the copy.
func TestReachTime(t *testing.T) {
	if got := connect.NetworkSettings(ucx.Settings{}, 20*time.Second, 0).ReachTime; got != 10*time.Second {
		t.Errorf("the first read may take %s", got)
	}
}

// The daemon that a command proposes to start is one that the program starts.
func TestProposedDaemonIsAccepted(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		url    string
		auth   contact.AuthChoice
		listen string
	}{
		{"ucx://localhost/in", contact.AuthNone, "127.0.0.1:7483"},
		{"ucx://localhost:9000/in", contact.AuthKeys, "127.0.0.1:9000"},
		{"ucx://127.0.0.1/in", contact.AuthNone, "127.0.0.1:7483"},
		{"ucx://127.1.2.3:9000/in", contact.AuthNone, "127.1.2.3:9000"},
		{"ucx://[::1]/in", contact.AuthNone, "[::1]:7483"},
		{"ucx://[::ffff:127.0.0.1]:9000/in", contact.AuthNone, "[::ffff:127.0.0.1]:9000"},
		{"ucx://lab.example/in", contact.AuthKeys, ":7483"},
		{"ucx://192.0.2.1:9000/in", contact.AuthKeys, ":9000"},
		{"ucx://[2001:db8::1]/in", contact.AuthKeys, ":7483"},
		{"ucx://[fe80::1%eth0]:9000/in", contact.AuthKeys, ":9000"},
	} {
		at, _, err := share.ParseRemote(c.url)
		must(t, err)
		start := report.WaitForDaemon(wire.Client, "", at.Address, c.auth == contact.AuthNone, time.Minute).Start[0]
		args, ours := strings.CutPrefix(start, "dma-copy ")
		if !ours || !strings.Contains(start, " --listen "+c.listen+" ") ||
			strings.Contains(start, "--auth none") != (c.auth == contact.AuthNone) {
			t.Errorf("%s: proposes %q", c.url, start)
		}
		if err := validateServe(strings.Fields(strings.Replace(args, "NAME=DIR", "in=.", 1))); err != nil {
			t.Errorf("%s: %q: %v", c.url, start, err)
		}
	}
	if validateServe(words("serve --auth none --listen :7483 --share in=.")) == nil {
		t.Error("every daemon is accepted")
	}
}

// Every command says that it waits for a daemon, without a terminal: as text and as an event.
func TestEveryCommandSaysThatItWaits(t *testing.T) {
	inNewDir(t, "x", "")
	writeFile(t, "peers", "ucx://127.0.0.1:1/in/\n")
	for _, line := range []string{
		"ls ucx://127.0.0.1:1/", "mkdir ucx://127.0.0.1:1/in/d", "rm ucx://127.0.0.1:1/in/x", "ping ucx://127.0.0.1:1/",
		"push x ucx://127.0.0.1:1/in/", "pull ucx://127.0.0.1:1/in/y .", "pull ucx://127.0.0.1:1/in/y -",
		"sync x ucx://127.0.0.1:1/in/", "push x --to peers",
	} {
		for form, want := range map[string]string{
			"text": `waiting for the daemon at 127.0.0.1:1 (10s of 15s): start there: ` +
				`dma-copy serve --listen 127.0.0.1:1 --auth none --share NAME=DIR` + "\n",
			"json": `"elapsed_seconds":10,"wait_seconds":15}` + "\n",
		} {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				stdio := root.Streams{Stdout: &out, Stderr: &out, Env: func(string) (string, bool) { return "", false }}
				args := append(strings.Fields(line), "--auth", "none", "--wait", "15s", "-o", form)
				err := program.New().Execute(t.Context(), stdio, args)
				if got := strings.Count(out.String(), want); got != 1 || exit.Code(err) != exit.Peer {
					t.Errorf("%s -o %s: %v\n%s", line, form, err, out.String())
				}
			})
		}
	}
}

// validateServe returns the error of a daemon's command line before the daemon starts.
func validateServe(args []string) error {
	stdio := root.Streams{Stdout: io.Discard, Stderr: io.Discard, Env: func(string) (string, bool) { return "", false }}
	p, daemon := program.New(), serve.Command()
	daemon.Run = func(context.Context, root.Streams, []string, zerolog.Logger) error {
		return daemon.Settings.(*serve.Settings).Validate()
	}
	return p.NewRootCommand(stdio, args, []root.Command{daemon}).Execute()
}
