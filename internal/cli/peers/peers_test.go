package peers

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// execute runs a command line with the parameter file, and returns what it prints on stdout.
func execute(t *testing.T, file string, args ...string) (string, error) {
	t.Helper()
	p := &root.Program{Copy: root.Command{Settings: new(option.General)}}
	p.Commands = []root.Command{Command(p.Settings)}
	var stdout bytes.Buffer
	streams := root.Streams{Stdout: &stdout, Stderr: io.Discard, Env: func(name string) (string, bool) {
		if name != "DMA_COPY_CONFIG" {
			return "", false
		}
		return file, true
	}}
	err := p.Execute(t.Context(), streams, append([]string{"peers"}, args...))
	return stdout.String(), err
}

const before = `{
    // the machines of the lab
    "peers": {
        "lab": {"address": "lab.example"}, // on the second floor
    },
}
`

func TestPeersAreEdited(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args    []string
		printed string
		code    int
	}{
		{[]string{"add", "dpu", "--device", "b1:00.1", "--key", "dpu"}, "added dpu\n", exit.OK},
		{[]string{"add", "dpu", "--device", "b1:00.1", "--key", "dpu"}, "unchanged dpu\n", exit.OK},
		{[]string{"add", "dpu", "--device", "b1:00.0"}, "", exit.Target},
		{[]string{"add", "dpu", "--device", "b1:00.0", "--overwrite"}, "added dpu\n", exit.OK},
		{[]string{"show", "dpu"}, "dpu\n  device      b1:00.0\n  from        " + file + ":5\n", exit.OK},
		{[]string{"remove", "lab"}, "removed lab\n", exit.OK},
		{[]string{"remove", "lab"}, "", exit.Usage},
		{[]string{"show", "lab"}, "", exit.Usage},
		{[]string{"add", "both", "--device", "b1:00.0", "--address", "lab"}, "", exit.Usage},
		{[]string{"add", "none"}, "", exit.Usage},
		{[]string{"add", "../x", "--device", "b1:00.0"}, "", exit.Usage},
		{[]string{"list", "x"}, "", exit.Usage},
		{[]string{"list", "--device", "b1:00.0"}, "", exit.Usage},
		{[]string{"forget", "dpu"}, "", exit.Usage},
		{nil, "", exit.Usage},
		{[]string{"add", "lab", "--address", "lab"}, "added lab\n", exit.OK},
	} {
		printed, err := execute(t, file, tc.args...)
		if printed != tc.printed || exit.Code(err) != tc.code {
			t.Errorf("%q: printed %q, error %v", tc.args, printed, err)
		}
	}
	const after = `{
    // the machines of the lab
    "peers": {
        "dpu": {"device": "b1:00.0"},
        "lab": {"address": "lab:7483"}
    },
}
`
	text, err := os.ReadFile(file)
	if err != nil || string(text) != after {
		t.Errorf("%v, the file is\n%s", err, text)
	}
}

// A file that is missing is made, and one that is not valid stays as it is.
func TestFileOfPeers(t *testing.T) {
	all := option.Commands{new(option.General)}
	missing := filepath.Join(t.TempDir(), "new.json")
	text, err := all.WithPeer(missing, "dpu", &option.Peer{Device: "b1:00.0"})
	if want := `{"peers": {"dpu": {"device": "b1:00.0"}}}` + "\n"; string(text) != want || err != nil {
		t.Errorf("%q: %v", text, err)
	}
	invalid := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(invalid, []byte(`{"peers": {"lab": {"adress": "x"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := all.WithPeer(invalid, "dpu", &option.Peer{Device: "b1:00.0"}); exit.Code(err) != exit.Usage {
		t.Error(err)
	}
}
