package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// expectSameTrees expects the same entries below two directories, with times that differ by less than that.
func (f *sshFixture) expectSameTrees(one, other string, times time.Duration) {
	f.t.Helper()
	same := sameTree
	same.Times = times
	if err := same.Compare(f.t.Context(), filepath.Join(f.dir, one), filepath.Join(f.dir, other)); err != nil {
		f.t.Error(err)
	}
}

// makePhotos makes a tree on the host.
func (f *sshFixture) makePhotos() {
	f.t.Helper()
	must(f.t, os.MkdirAll(filepath.Join(f.dir, "host/photos/2026 march"), 0o755))
	for name, size := range map[string]int64{"a.img": 3 << 20, "b.img": 5, "2026 march/c": 70000, "empty": 0} {
		must(f.t, writeRandomFile(filepath.Join(f.dir, "host/photos", name), name, size))
	}
}

// A tree that is pushed to a machine is what scp makes of it, and pulled it is itself again. Nothing stays there.
func TestSSHCopies(t *testing.T) {
	t.Parallel()
	f := newSSHFixture(t)
	f.makePhotos()
	f.run(exitOK, "dma-copy push host/photos host/photos/a.img "+f.remote("")).expectStderr("peer  far: authenticated")
	f.expectSameTrees("host/photos", "dpu/photos", time.Nanosecond)
	scp := exec.Command("scp", "-q", "-r", "-p", "-S", filepath.Join(f.dir, "bin/ssh"), "host/photos",
		"far:"+f.dir+"/dpu/scp")
	scp.Dir = f.dir
	if printed, err := scp.CombinedOutput(); err != nil {
		t.Fatalf("scp: %v: %s", err, printed)
	}
	f.expectSameTrees("dpu/scp", "dpu/photos", time.Second) // as precise as scp
	f.run(exitOK, "dma-copy pull ssh://far/~/photos host/back")
	f.expectSameTrees("host/photos", "host/back", time.Nanosecond)
	f.run(exitOK, "dma-copy pull ssh://far/./photos/*.img ssh://far/~/scp/empty host/some/ --mkpath")
	expectOnly(t, filepath.Join(f.dir, "host/some"), "a.img", "b.img", "empty")

	must(t, os.Remove(filepath.Join(f.dir, "host/photos/b.img")))
	f.run(exitOK, "dma-copy sync --delete=force host/photos ssh://far/~/")
	f.expectSameTrees("host/photos", "dpu/photos", 0) // deleting changes the time of a directory
	listed := f.run(exitOK, "dma-copy ls -R "+f.remote("photos")).stdout.String()
	if want := "2026 march/\n2026 march/c\na.img\nempty\n"; listed != want {
		t.Errorf("listed %q, want %q", listed, want)
	}
	f.run(exitOK, "dma-copy mkdir -p ssh://far/~/new/deep")
	f.run(exitOK, "dma-copy push --mkpath host/photos/a.img ssh://far/~/other/deeper/")
	if os.Geteuid() == 0 { // who logs in as root may set what root may set
		f.run(exitOK, "dma-copy push --preserve all --mkpath host/photos/a.img ssh://far/~/other/all/")
	}
	f.run(exitOK, "dma-copy rm -r ssh://far/~/new ssh://far/~/other/deeper")
	expectOnly(t, filepath.Join(f.dir, "dpu"), "a.img", "photos", "scp", "other")
	f.expectNothingLeft()
}

// A symlink that the user names leads where it leads; one in a tree does not lead out of the directory.
func TestSSHSymlinks(t *testing.T) {
	t.Parallel()
	f := newSSHFixture(t)
	f.createFile("host", 1000)
	must(t, os.Mkdir(filepath.Join(f.dir, "elsewhere"), 0o755))
	for _, name := range []string{"dpu/link", "dpu/tree/link"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(f.dir, name)), 0o755))
		must(t, os.Symlink(filepath.Join(f.dir, "elsewhere"), filepath.Join(f.dir, name)))
	}
	f.run(exitOK, "dma-copy push host/file "+f.remote("link/"))
	f.run(exitTarget, "dma-copy push host/file "+f.remote("tree/link"))
	must(t, os.MkdirAll(filepath.Join(f.dir, "host/tree/link"), 0o755))
	must(t, writeRandomFile(filepath.Join(f.dir, "host/tree/link/escaped"), "x", 10))
	f.run(exitSomeFailed, "dma-copy push host/tree "+f.remote(""))
	expectOnly(t, filepath.Join(f.dir, "elsewhere"), "file")
}

// Where no address of the far side can be reached, everything goes through ssh.
func TestSSHThroughSSH(t *testing.T) {
	t.Parallel()
	f := newSSHFixture(t)
	f.installFar(`"$real" "$@" | sed -u 's/"addresses":[^]]*]/"addresses":[]/'`)
	f.makePhotos()
	f.run(exitOK, "dma-copy push -v host/photos "+f.remote("")).expectStderr("tls to far through ssh")
	f.expectSameTrees("host/photos", "dpu/photos", time.Nanosecond)
	f.expectNothingLeft()
}

// The far side ends when the client does, however that ends. A partial copy can be resumed.
func TestSSHClientDies(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		f := newSSHFixture(t)
		f.createFile("host", pacedSize)
		push := f.start("push", "dma-copy push "+endlessFlags+"host/file "+f.remote("copy"))
		part := filepath.Join(f.dir, "dpu", ".copy.dma-copy-part")
		for look := new(lookAgain); ; look.pause() {
			if _, err := os.Stat(part); err == nil || push.hasEnded() {
				break
			}
		}
		must(t, push.signal(signal))
		if code := push.exitCode(); code != exitSignal+int(signal) {
			t.Errorf("exit code %d after %s:\n%s", code, signal, push.stderr.String())
		}
		f.expectNothingLeft()
		f.run(exitOK, "dma-copy push host/file "+f.remote("copy"))
		if one, other := readFile(t, f.dir, "host/file"), readFile(t, f.dir, "dpu/copy"); one != other {
			t.Errorf("the copy after %s differs", signal)
		}
	}
}

func TestSSHFailures(t *testing.T) {
	t.Parallel()
	f := newSSHFixture(t)
	f.createFile("host", 1000)
	for _, tc := range []struct {
		name, far, line string
		code            int
		message         string
	}{
		{"unreachable", "", "push host/file ssh://closed/no/x", exitPeer, "ssh cannot connect to closed: "},
		{"no key", "", "push host/file ssh://locked/no/x", exitRefused, "Permission denied"},
		{"unknown host", "", "push host/file ssh://unknown/no/x", exitRefused, "Host key verification failed"},
		{"no directory", "", "push host/file " + f.remote("no/"), exitTarget, "create it, or use --mkpath"},
		{"no source", "", "pull " + f.remote("no/a") + " .", exitSource, "no such file or directory"},
		{"not installed", "exec no-such-program", "ls " + f.remote(""), exitDevice, "dma-copy is not installed on far"},
		{"talkative shell", "echo Welcome\x1b; cat", "ls " + f.remote(""), exitProtocol,
			`"Welcome\x1b" is not a line of dma-copy`},
		{"endless line", "cat /dev/zero", "ls " + f.remote(""), exitProtocol, "the line is longer than 16384 bytes"},
		{"other version", `echo '{"v":2}'; cat`, "ls " + f.remote(""), exitProtocol, "install the same dma-copy"},
		{"bad key", `echo '{"v":1,"key":"x","port":1}'; cat`, "ls " + f.remote(""), exitProtocol, "public key"},
		{"own error", `echo '{"v":1,"code":99,"error":"bad\u001b"}'; cat`, "ls " + f.remote(""), exitFailure,
			`dma-copy on far: bad\x1b`},
		{"no answer", "exit 9", "ls " + f.remote(""), exitProtocol, "does not answer (exit code 9)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.far != "" {
				f.installFar(tc.far)
				defer f.installFar(`exec "$real" "$@"`)
			}
			s := f.start("command", "dma-copy "+tc.line)
			if code := s.exitCode(); code != tc.code || !strings.Contains(s.stderr.String(), tc.message) {
				t.Errorf("exit code %d, printed %s", code, s.stderr.String())
			}
			if bytes.ContainsRune([]byte(s.stderr.String()), '\x1b') {
				t.Error("a control character of the far side was printed")
			}
		})
	}
	f.expectNothingLeft()
}
