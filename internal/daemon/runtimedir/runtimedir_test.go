package runtimedir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
)

// childLock names a directory in which a child process locks the device, until it is killed or its stdin ends.
const childLock = "RUNTIMEDIR_TEST_LOCK"

func TestMain(m *testing.M) {
	directory := os.Getenv(childLock)
	if directory == "" {
		os.Exit(m.Run())
	}
	var lock *os.File
	d, err := Open(directory)
	if err == nil {
		lock, err = d.Lock("0000:03:00.0 b1:00.0")
	}
	if err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString("locked\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = lock.Close() // not before, by a garbage collection
}

func TestDefault(t *testing.T) {
	session, uid := sessionOf(t, 7)
	for _, test := range []struct {
		name   string
		env    map[string]string
		uid    int
		want   string
		failed string
	}{
		{"systemd", map[string]string{"RUNTIME_DIRECTORY": "/run/a:/run/b", "XDG_RUNTIME_DIR": "/x"}, 0, "/run/a", ""},
		{"root", map[string]string{"XDG_RUNTIME_DIR": "/run/user/0"}, 0, "/run/dma-copy", ""},
		{"user", map[string]string{"XDG_RUNTIME_DIR": session + "/"}, uid, session + "/dma-copy", ""},
		{"user after su", map[string]string{"XDG_RUNTIME_DIR": session}, 8, "/tmp/dma-copy-8", ""},
		{"user after logout", map[string]string{"XDG_RUNTIME_DIR": session + "/absent"}, 8, "/tmp/dma-copy-8", ""},
		{"neither", nil, 7, "/tmp/dma-copy-7", ""},
		{"relative of systemd", map[string]string{"RUNTIME_DIRECTORY": "x"}, 0, "", "RUNTIME_DIRECTORY"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Default(func(name string) string { return test.env[name] }, test.uid)
			if test.failed == "" && (err != nil || got != test.want) {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
			var coder exit.Coder
			if test.failed != "" && (!errors.As(err, &coder) || coder.ExitCode() != exit.Usage ||
				!strings.Contains(err.Error(), test.failed)) {
				t.Errorf("got %v, want %q", err, test.failed)
			}
		})
	}
}

func TestCandidates(t *testing.T) {
	defer func(was string) { temporary = was }(temporary)
	temporary = t.TempDir()
	directory, user := sessionOf(t, os.Geteuid()+1)
	session := func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": directory}[name] }
	nothing := func(string) string { return "" }
	mine, of := os.Geteuid(), func(uid int) string { return filepath.Join(temporary, fmt.Sprintf("dma-copy-%d", uid)) }
	other := mine + 1
	err := errors.Join(os.Mkdir(of(mine), 0o700), os.Mkdir(of(other), 0o777), os.Chmod(of(other), 0o777))
	if err != nil {
		t.Fatal(err)
	}
	own := of(mine) + " "
	if mine == 0 {
		own = "" // root's is that of the system
	}
	for _, test := range []struct {
		name     string
		variable func(string) string
		uid      int
		want     string
	}{
		{"others may write to it", nothing, other, "/run/dma-copy"},
		{"absent", nothing, other + 1, "/run/dma-copy"},
		{"root", session, 0, "/run/dma-copy"},
		{"outside of a session", nothing, mine, own + "/run/dma-copy"},
	} {
		if got := strings.Join(Candidates(test.variable, test.uid), " "); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	if mine != 0 {
		return
	}
	if err := errors.Join(os.Chmod(of(other), 0o700), os.Chown(of(other), other, -1)); err != nil {
		t.Fatal(err)
	}
	want := []string{directory + "/dma-copy", of(user), System}
	if got := Candidates(session, other); !slices.Equal(got, want) {
		t.Errorf("another user: got %q, want %q", got, want)
	}
}

// sessionOf returns the directory of a session and its user, who without the rights of root is this one.
func sessionOf(t *testing.T, uid int) (directory string, user int) {
	t.Helper()
	directory = t.TempDir()
	if os.Geteuid() != 0 {
		return directory, os.Geteuid()
	}
	if err := os.Chown(directory, uid, -1); err != nil {
		t.Fatal(err)
	}
	return directory, uid
}

func mustOpen(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpenCreatesPrivateDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	for range 2 {
		mustOpen(t, path)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
}

func TestUnsafeDirectoriesAreRefused(t *testing.T) {
	parent := t.TempDir()
	writable, link, file := filepath.Join(parent, "writable"), filepath.Join(parent, "link"), filepath.Join(parent, "f")
	err := errors.Join(os.Mkdir(writable, 0o700), os.Chmod(writable, 0o770), os.Symlink(parent, link),
		os.WriteFile(file, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		writable: "others may write to it (mode 0770)", link: "not a directory", file: "not a directory",
		filepath.Join(parent, "absent/run"): "no such file",
	}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(parent, "foreign")
		if err := errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 4711, -1)); err != nil {
			t.Fatal(err)
		}
		tests[foreign] = "user 4711 owns it"
	}
	for path, want := range tests {
		var coder exit.Coder
		if _, err := Open(path); !errors.As(err, &coder) || coder.ExitCode() != exit.Usage ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

// A second daemon for a function is refused with the process of the first. After a kill of the first it can start.
func TestSecondDaemonIsRefused(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "run"))
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first := exec.CommandContext(t.Context(), executable)
	first.Env = append(os.Environ(), childLock+"="+d.Path())
	output, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.StdinPipe(); err != nil { // open until Wait
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	_, err = d.Lock("0000:03:00.0 b1:00.0")
	want := fmt.Sprintf("another dma-copy serve is running for 0000:03:00.0 b1:00.0: process %d", first.Process.Pid)
	if held, is := errors.AsType[exit.Coder](err); !is || held.Error() != want || held.ExitCode() != exit.Device {
		t.Errorf("got %v, want %s", err, want)
	}
	other, err := d.Lock("0000:03:00.0 b1:00.2")
	if err != nil {
		t.Fatalf("another function: %v", err)
	}
	defer other.Close()

	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // killed
	second, err := d.Lock("0000:03:00.0 b1:00.0")
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	second.Close()
}

func TestLockIsReleased(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "run"))
	for range 2 {
		lock, err := d.Lock("0000:b1:00.0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Lock("0000:b1:00.0"); err == nil || !strings.Contains(err.Error(), "process ") {
			t.Errorf("locked twice: %v", err)
		}
		lock.Close()
	}
}

// The owner may be killed before it has written its id.
func TestHeldWithoutPID(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "run"))
	lock, err := d.Lock("mlx5_0")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, content := range []string{"", "text", "-5\n"} {
		if err := os.WriteFile(d.File("mlx5_0.lock"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = d.Lock("mlx5_0")
		if want := "another dma-copy serve is running for mlx5_0"; err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", content, err, want)
		}
	}
}
