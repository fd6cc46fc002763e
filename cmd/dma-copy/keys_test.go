package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
)

const someKey = "dma-copy-v1:jNVyyo9WUOqzZ_LwF6kmAFHf4k6ebHYOxE8clwDUVbA"

func TestKeysRefusals(t *testing.T) {
	inNewDir(t, "two", someKey+"\n# a comment\n\n"+someKey+"\n")
	writeFile(t, "empty", "\n# a comment\n")
	writeFile(t, "long", strings.Repeat("#\n", (16<<10)))
	for _, tc := range []struct{ line, sentence string }{
		{"keys", "keys: nothing to do: give new, show, trust, list or remove"},
		{"keys shwo", "keys shwo: did you mean keys show?"},
		{"keys 17", "keys 17: unknown: give new, show, trust, list or remove"},
		{"keys new x", "keys new takes no argument: see dma-copy keys --help"},
		{"keys remove", "keys remove takes the NAME of a key: see dma-copy keys --help"},
		{"keys remove ../x", `"../x" is not a name of a key: use up to 64 of a-z, 0-9, ".", "_" and "-", and begin ` +
			`with a letter, digit or "_"`},
		{"keys list --owner", "--owner is for keys trust: leave it out of keys list"},
		{"keys new --share a=ro", "--share is for keys trust: leave it out of keys new"},
		{"keys trust dpu", "keys trust takes a NAME and a KEY, which is the line that dma-copy keys show prints on " +
			"the other side, a file with it, or - for stdin"},
		{"keys trust dpu two lines", `unexpected argument "lines": give the line of a key, which begins with ` +
			"dma-copy-v1:, or one file"},
		{"keys trust dpu two", "two: 2 lines instead of one key"},
		{"keys trust dpu empty", "empty: 0 lines instead of one key"},
		{"keys trust dpu long", "long: not the line of a key: it has more than 16384 bytes"},
		{"keys trust dpu dma-copy-v1:AAAA", "public key: 3 bytes instead of 32 (is the line complete?)"},
		{"keys trust .dpu " + someKey, `".dpu" is not a name of a key: use up to 64 of a-z, 0-9, ".", "_" and "-", ` +
			`and begin with a letter, digit or "_"`},
		{"keys trust dpu " + someKey + " --share a=ro --share a=wo",
			`--share "a=wo": give share a once, with all that the key may do there`},
		{"keys trust dpu " + someKey + " --share a", `--share "a": not a share with an access: "a" has no access: ` +
			"write NAME=ro, NAME=wo or NAME=rw"},
		{"keys trust dpu " + someKey + " --max-connections x",
			`--max-connections "x": give a whole number from 0 to 2147483647`},
	} {
		t.Run(tc.line, func(t *testing.T) {
			checkRefusal(t, invoke(nil, words(tc.line+" --keys keys")...), tc.sentence)
		})
	}
	if _, err := os.Lstat("keys"); err == nil {
		t.Error("a refused command has made the directory of keys")
	}
}

// The directory of keys is that of the user, unless a flag or a variable names another one.
func TestKeysDirectory(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		variables map[string]string
		args      []string
	}{
		"flag":     {nil, []string{"--keys", filepath.Join(dir, "flag")}},
		"variable": {map[string]string{"DMA_COPY_KEYS": filepath.Join(dir, "variable")}, nil},
	} {
		got := invoke(tc.variables, append([]string{"keys", "new"}, tc.args...)...)
		if got.err != nil || !strings.HasPrefix(got.stdout, "dma-copy-v1:") {
			t.Errorf("%s: printed %q, error %v", name, got.stdout, got.err)
		}
		if _, err := os.Lstat(filepath.Join(dir, name, "identity.pem")); err != nil {
			t.Error(err)
		}
	}
}

// An error of the system has the code of what was to be done.
func TestKeysExitCodeOfTheSystem(t *testing.T) {
	inNewDir(t, "file", "")
	for line, want := range map[string]int{
		"keys new --keys file/keys":                   exit.Target,
		"keys show --keys file/keys":                  exit.Source,
		"keys list --keys file/keys":                  exit.Source,
		"keys trust dpu file/key --keys keys":         exit.Source,
		"keys trust dpu " + someKey + " --keys file/": exit.Target,
	} {
		if got := invoke(nil, words(line)...); exit.Code(got.err) != want {
			t.Errorf("%s: exit code %d, want %d: %v", line, exit.Code(got.err), want, got.err)
		}
	}
}
