package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stage is a folder with a host/ and a dpu/ in which both sides of a copy are run: what a script has, for tests that
// go through a table.
type stage struct {
	t           *testing.T
	folder      string
	environment []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageIn(t, t.TempDir())
}

func newStageIn(t *testing.T, folder string) *stage {
	t.Helper()
	needSoftwareDevice(t)
	variables, err := furnish(folder)
	if err != nil {
		t.Fatal(err)
	}
	variables = append(variables, "PATH="+os.Getenv("PATH"))
	return &stage{t: t, folder: folder, environment: variables}
}

// side is one program of a copy.
type side struct {
	*process
	t *testing.T
}

// start runs a command line, whose words may be preceded by NAME=VALUE settings.
func (s *stage) start(name, line string) side {
	s.t.Helper()
	return s.startUnread(name, line)
}

// startUnread is start with streams whose reader is gone: "stdout", "stderr".
func (s *stage) startUnread(name, line string, streams ...string) side {
	s.t.Helper()
	environment, argv := s.environment, strings.Fields(line)
	for strings.Contains(argv[0], "=") {
		environment, argv = append(environment[:len(environment):len(environment)], argv[0]), argv[1:]
	}
	p, err := launch(launching{name: name, folder: s.folder, environment: environment, argv: argv, unread: streams})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.kill)
	return side{process: p, t: s.t}
}

// The command lines of both sides; FILE and more flags follow.
const (
	ourHost       = "dma-copy -p b1:00.1 -f host/file "
	ourDPU        = "dma-copy -p 03:00.1 -r b1:00.1 -f dpu/file "
	referenceOnly = "--protocol reference "
	refHost       = "refpeer -role host -device b1:00.1 -file host/file "
	refDPU        = "refpeer -role dpu -device 03:00.1 -rep b1:00.1 -file dpu/file "
)

// ends expects an exit code, and the manners that go with it.
func (s side) ends(code int) {
	s.t.Helper()
	if err := s.endsWith(code, false); err != nil {
		s.t.Error(err)
	}
}

// put makes a file of noise on one side, "host" or "dpu".
func (s *stage) put(where string, size int64) {
	s.t.Helper()
	if err := writeNoise(s.path(where), s.t.Name(), size); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) path(where string) string { return filepath.Join(s.folder, where, "file") }

// same expects both sides to have the same file.
func (s *stage) same() {
	s.t.Helper()
	if err := compareFiles(s.path("host"), s.path("dpu")); err != nil {
		s.t.Error(err)
	}
}

// absent expects a side not to have the file.
func (s *stage) absent(where string) {
	s.t.Helper()
	if _, err := os.Lstat(s.path(where)); err == nil {
		s.t.Errorf("%s has the file", where)
	}
}

// clean expects nothing to be left but the files.
func (s *stage) clean() {
	s.t.Helper()
	folders := []string{filepath.Join(s.folder, "host"), filepath.Join(s.folder, "dpu")}
	left, err := leftovers(filepath.Join(s.folder, runtimeFolder), folders)
	if err != nil || len(left) > 0 {
		s.t.Errorf("left behind: %s (%v)", strings.Join(left, ", "), err)
	}
}

// copyOnce runs one copy that has to succeed, with more flags for the DPU's side.
func (s *stage) copyOnce(dpuFlags string) {
	s.t.Helper()
	host := s.start("host", ourHost)
	dpu := s.start("dpu", ourDPU+dpuFlags)
	host.ends(0)
	dpu.ends(0)
}

// recovers expects that after the end of a process the next copy works, in pieces of the size that the copies of these tests have,
// and that with it the sockets and partial files of a dead one are gone. Of a part that cannot be gone on with the receiver warns.
func (s *stage) recovers(sender string, warned bool) {
	s.t.Helper()
	receiver := otherThan(sender)
	sides := map[string]side{}
	for name, line := range map[string]string{"host": ourHost, "dpu": ourDPU + "--chunk 4096 "} {
		if name == receiver {
			line += "--overwrite"
		}
		sides[name] = s.start(name, line)
	}
	sides[sender].ends(0)
	if err := sides[receiver].endsWith(0, warned); err != nil {
		s.t.Error(err)
	}
	s.same()
	s.clean()
}
