package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestOneCPUFromTheStart finds package onecpu before all packages that are not of Go's library: what they allocate in
// their initialisation is to be on one CPU.
func TestOneCPUFromTheStart(t *testing.T) {
	t.Parallel()
	must(t, installProgram())
	version := exec.Command("dma-copy", "version", "--driver", "soft")
	version.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := version.CombinedOutput()
	must(t, err)
	const want = modulePath + "/cmd/dma-copy/internal/placement/onecpu"
	first := regexp.MustCompile(`(?m)^init (\w+\.\S+) @`).FindSubmatch(trace)
	if first == nil || string(first[1]) != want {
		t.Errorf("initialised first: %q, want %s", first, want)
	}
}
