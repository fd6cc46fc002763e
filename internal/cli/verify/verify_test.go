package verify

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/exit"
)

func TestVerifyReportsAFullDisk(t *testing.T) {
	inNewDir(t, "a", "same")
	writeFile(t, "b", "same")
	writeFile(t, "c", "other")
	toStdout := Settings{Digest: digest.XXH3, NewManifest: "-"}
	for _, tc := range []struct {
		s    Settings
		args []string
	}{
		{Settings{Digest: digest.XXH3}, []string{"a", "b"}},
		{Settings{Digest: digest.XXH3}, []string{"a", "c"}},
		{toStdout, []string{"a"}},
	} {
		err := Run(t.Context(), fullDisk{}, io.Discard, tc.s, tc.args, nil, zerolog.Nop())
		if !errors.Is(err, syscall.ENOSPC) || exit.Code(err) != exit.Failure {
			t.Errorf("%q: error %v", tc.args, err)
		}
	}
}

// File names may contain control characters, which reach neither the terminal nor another line.
func TestNamesWithControlCharacters(t *testing.T) {
	inNewDir(t, "a\nb\x1b", "content")
	var stdout, stderr strings.Builder
	s := Settings{Digest: digest.XXH3, NewManifest: "sums"}
	if err := Run(t.Context(), &stdout, &stderr, s, []string{"a\nb\x1b"}, nil, zerolog.Nop()); err != nil ||
		stderr.Len() == 0 {
		t.Fatalf("error %v, stderr %q", err, stderr.String())
	}
	if text := readFile(t, "sums"); !strings.HasPrefix(text, `\xxh3:`) || !strings.HasSuffix(text, "  a\\nb\x1b\n") {
		t.Errorf("the manifest is %q", text)
	}
	want := `ok    a\nb\x1b  ` + digestOfText(t, "content") + "\n"
	err := Run(t.Context(), &stdout, &stderr, Settings{Digest: digest.XXH3}, []string{"sums"}, nil, zerolog.Nop())
	if err != nil || stdout.String() != want {
		t.Errorf("error %v, stdout %q, want %q", err, stdout.String(), want)
	}
}

func digestOfText(t *testing.T, text string) string {
	t.Helper()
	sum, _, err := digest.Of(t.Context(), digest.XXH3, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

// inNewDir makes a fresh directory the working directory and puts a file there, so that errors show a short name.
func inNewDir(t *testing.T, name, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, name, text)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fullDisk is a writer that fails like a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestMain fails a run of tests that leaves goroutines behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
