package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/daemon/status"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/service"
)

// listenForStatus plays a daemon that was started a second ago.
func listenForStatus(t *testing.T, path string) {
	t.Helper()
	socket, err := status.Listen(path, status.Daemon{
		PID: os.Getpid(), Software: "dma-copy test", Authenticates: true, Recent: &status.Recent{},
		Status: func() service.Status { return service.Status{Started: time.Now().Add(-time.Second)} },
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, socket.Close()) })
}

func TestStatus(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "dma-copy", status.SocketName)
	must(t, os.Mkdir(filepath.Dir(path), 0o700))
	listenForStatus(t, path)
	// systemd's variable names the directory for every user, so that the test finds it as root, too.
	environment := map[string]string{"RUNTIME_DIRECTORY": filepath.Dir(path)}
	for _, test := range []struct {
		environment map[string]string
		line, want  string
	}{
		{environment, "status", "daemon       dma-copy test, process "},
		{environment, "status -o json", `{"v":1,"pid":`},
		{nil, "status --socket " + path, "keys         0 trusted"},
		{map[string]string{"DMA_COPY_SOCKET": path}, "status", "keys         0 trusted"},
		{nil, "status --runtime-dir " + filepath.Dir(path), "keys         0 trusted"},
	} {
		got := invoke(test.environment, words(test.line)...)
		if got.err != nil || !strings.Contains(got.stdout, test.want) {
			t.Errorf("%s: %v, printed %s", test.line, got.err, got.stdout)
		}
	}
}

func TestStatusWithoutDaemon(t *testing.T) {
	got := invoke(nil, "status", "--socket", filepath.Join(t.TempDir(), "absent"))
	if got.err == nil || exit.Code(got.err) != exit.Peer || got.stdout != "" {
		t.Errorf("got %v, printed %s", got.err, got.stdout)
	}
}
