package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// bundleOf returns the parts of an archive by the last element of their names, below the only directory.
func bundleOf(t *testing.T, file string) map[string]string {
	t.Helper()
	archive, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	compressed, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	reader := tar.NewReader(compressed)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		parts[path.Base(header.Name)] = string(content)
	}
}

func writeTestFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inBundleDirectory enters a new directory and returns variables for the software device there.
func inBundleDirectory(t *testing.T) map[string]string {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("DMA_COPY_SOFT_DIR", t.TempDir())
	return map[string]string{"DMA_COPY_DRIVER": "soft", "XDG_RUNTIME_DIR": t.TempDir()}
}

func TestBundleHasWhatAReportNeeds(t *testing.T) {
	variables := inBundleDirectory(t)
	const key = "dma-copy-key-MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"
	writeTestFile(t, "params.json", `{
  "doca_program_flags": {"chunk": "1M", "with": "sesame"},
  "serve": {"share": ["inbox=/home/ada/merger plans/2027,rw"]},
  "peers": {"dpu": {"address": "dpu:7483", "key": "`+key+`"}}
}`)
	writeTestFile(t, "run.events", `{"event":"file","path":"secret plans/moon.txt"}`+"\n")
	writeTestFile(t, "run.log", `2026-11-29 DBG entry stored path="secret plans/moon.txt" bytes=1`+"\n")
	got := invoke(variables, "bundle", "report.tar.gz", "-j", "params.json", "--events-file", "run.events",
		"--log-file", "run.log")
	if got.err != nil {
		t.Fatal(got.err)
	}
	parts := bundleOf(t, "report.tar.gz")
	devices := `"pci_address"`
	if driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft}); errors.Is(err, doca.ErrNoCgo) {
		devices = "error: " + err.Error()
	} else if err != nil || driver.Close() != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"version.json": `"version"`, "devices.json": devices, "doctor.json": `"findings"`,
		"config-copy.txt": "1M", "config-serve.txt": "max-connections", "status.json": "no daemon listens on",
		"machine.txt": "== /proc/version\n", "kernel.log": "", "environment.txt": "",
		"events.jsonl": `"event":"file"`, "trace.log": "bytes=1",
	} {
		content, is := parts[name]
		if !is || !strings.Contains(content, want) {
			t.Errorf("%s is there: %t, and has no %q:\n%s", name, is, want, content)
		}
		if !strings.Contains(got.stdout, name+" ") {
			t.Errorf("%s is not in the list\n%s", name, got.stdout)
		}
	}
	for name, content := range parts {
		for _, secret := range []string{"sesame", key, "secret plans", "moon", "merger", "2027,r"} {
			if strings.Contains(content, secret) {
				t.Errorf("%s has %q", name, secret)
			}
		}
	}
	if chunk := strings.Fields(lineWith(parts["config-copy.txt"], "chunk")); chunk[len(chunk)-1] != "params.json:2" {
		t.Errorf("the origin of the chunk is missing: %q", chunk)
	}
	var findings any
	if err := json.Unmarshal([]byte(parts["doctor.json"]), &findings); err != nil {
		t.Error(err)
	}
}

// lineWith returns the first line of a text that begins with a word.
func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, word+" ") {
			return line
		}
	}
	return ""
}

func TestBundleReplacesNothing(t *testing.T) {
	variables := inBundleDirectory(t)
	writeTestFile(t, "report.tar.gz", "the user's own")
	got := invoke(variables, "bundle", "report.tar.gz")
	if code := exit.Code(got.err); code != 5 {
		t.Errorf("exit code %d, want 5: %v", code, got.err)
	}
	if content, err := os.ReadFile("report.tar.gz"); err != nil || string(content) != "the user's own" {
		t.Errorf("it is now %q, %v", content, err)
	}
	if got := invoke(variables, "bundle", "report.tar.gz", "--overwrite"); got.err != nil {
		t.Error(got.err)
	}
	bundleOf(t, "report.tar.gz")
}

func TestBundleIsListedOnly(t *testing.T) {
	variables := inBundleDirectory(t)
	got := invoke(variables, "bundle", "--list", "--peer", "-p", "b1:00.1") // does not wait for it
	if got.err != nil || !strings.Contains(got.stdout, "machine.txt") {
		t.Errorf("%v, printed\n%s", got.err, got.stdout)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestBundleWithoutTheNamedLog(t *testing.T) {
	variables := inBundleDirectory(t)
	got := invoke(variables, "bundle", "--log-file", "absent")
	if code := exit.Code(got.err); code != 4 || !strings.Contains(got.err.Error(), "absent") {
		t.Errorf("exit code %d, want 4: %v", code, got.err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
