package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFewDescriptors allows both sides ever more open files, from what hardly starts a program to what a copy can do
// with. Each time the copy succeeds, or both sides end at once and name the limit, and neither the peer nor the device
// is blamed.
func TestFewDescriptors(t *testing.T) {
	const enough = 64
	for _, sender := range []string{"host", "dpu"} {
		t.Run(sender+"_sends", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put(sender, 300_000)
			for limit := 8; limit <= enough; limit += 4 {
				must(t, os.RemoveAll(s.path(otherThan(sender))))
				limited := s.limited(fmt.Sprintf("ulimit -n %d", limit))
				host := s.start("host", limited+ourHost)
				dpu := s.start("dpu", limited+ourDPU)
				<-host.ended
				if limit == enough || exitCodeOf(host.command.ProcessState) == exitOK {
					host.ends(exitOK)
					dpu.ends(exitOK)
					s.same()
					continue
				}
				for _, one := range []side{host, dpu} {
					one.refuses("cannot open enough files: ", "raise the limit on open files (ulimit -n 1024)")
				}
			}
			s.clean()
		})
	}
}

// TestLimitsOfTheRuntime is of what Go's runtime would die of, with a stack trace and 2 or 134.
func TestLimitsOfTheRuntime(t *testing.T) {
	s := newStage(t)
	for limit, says := range map[string]string{
		"ulimit -v 400000":  "cannot reserve enough memory: the limit on address space is 390 MiB of 2048: raise it (ulimit -v unlimited)",
		"ulimit -v 1200000": "cannot reserve enough memory: the limit on address space is 1171 MiB of 2048: raise it (ulimit -v unlimited)",
	} {
		s.start("host", s.limited(limit)+ourHost).refuses(says)
	}
	if os.Geteuid() != 0 {
		t.Skip("the limit on processes takes another user's process to be sure of, and that takes root")
	}
	program, err := exec.LookPath("dma-copy")
	must(t, err)
	must(t, openWay(program))
	limited := strings.Fields(s.limited("ulimit -u 1 2>/dev/null || ulimit -p 1"))
	p, err := launch(launching{
		name: "host", folder: s.folder, environment: s.environment, unprivileged: true,
		argv: append(limited, strings.Fields(ourHost)...),
	})
	must(t, err)
	t.Cleanup(p.kill)
	side{process: p, t: t}.refuses("cannot make enough threads: ", "raise the limit on processes (ulimit -u)")
}

// limited is a command that runs another one under a limit, and without descriptors that the tests have inherited.
func (s *stage) limited(limit string) string {
	s.t.Helper()
	script := fmt.Sprintf("exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-\n%s || exit\nexec \"$@\"\n", limit)
	path := filepath.Join(s.folder, "limited")
	must(s.t, os.WriteFile(path, []byte(script), 0o644))
	// Executed itself, it could still be open for writing in a child of another test that has not called exec yet.
	return "/bin/sh " + path + " "
}

// refuses expects a limit to be named in one line.
func (s side) refuses(says ...string) {
	s.t.Helper()
	s.ends(exitUsage)
	for _, text := range says {
		if said := s.stderr.String(); !strings.Contains(said, text) {
			s.t.Errorf("the %s does not say %q:\n%s", s.name, text, said)
		}
	}
}
