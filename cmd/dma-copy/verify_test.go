package main

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

func TestVerifyReportsAFullDisk(t *testing.T) {
	inNewFolder(t, "a", "same")
	writeFile(t, "b", "same")
	writeFile(t, "c", "other")
	toStdout := config.Verify{Digest: digest.XXH3, NewManifest: "-"}
	for _, tc := range []struct {
		s    config.Verify
		args []string
	}{
		{config.Verify{Digest: digest.XXH3}, []string{"a", "b"}},
		{config.Verify{Digest: digest.XXH3}, []string{"a", "c"}},
		{toStdout, []string{"a"}},
	} {
		err := verify(t.Context(), fullDisk{}, io.Discard, tc.s, tc.args, zerolog.Nop())
		if !errors.Is(err, syscall.ENOSPC) || report.ExitCode(err) != exit.Failure {
			t.Errorf("%q: error %v", tc.args, err)
		}
	}
}

// Names are the operator's, but may come from elsewhere: they reach neither the terminal nor the next line as they are.
func TestNamesWithControlCharacters(t *testing.T) {
	inNewFolder(t, "a\nb\x1b", "content")
	var stdout, stderr strings.Builder
	s := config.Verify{Digest: digest.XXH3, NewManifest: "sums"}
	if err := verify(t.Context(), &stdout, &stderr, s, []string{"a\nb\x1b"}, zerolog.Nop()); err != nil || stderr.Len() == 0 {
		t.Fatalf("error %v, stderr %q", err, stderr.String())
	}
	if text := readFile(t, "sums"); !strings.HasPrefix(text, `\xxh3:`) || !strings.HasSuffix(text, "  a\\nb\x1b\n") {
		t.Errorf("the manifest is %q", text)
	}
	want := `ok    a\nb\x1b  ` + digestOfText(t, "content") + "\n"
	err := verify(t.Context(), &stdout, &stderr, config.Verify{Digest: digest.XXH3}, []string{"sums"}, zerolog.Nop())
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
