package e2e

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSyncIntoFoldedNames changes the case of names in the source of a sync --delete into exFAT, which finds a file by
// any case of its name and lists it with that of its creation. The file stays, and what the source lacks does not. A
// directory is in the way of a file of its name in another case.
func TestSyncIntoFoldedNames(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	d := f.serve("")
	defer d.stop()
	mountExFAT(t, f.share("pushed"))
	mountExFAT(t, f.local("pulled"))
	for target, line := range map[string]string{
		f.share("pushed"): "host/source :files/pushed", f.local("pulled"): ":files/source host/pulled",
	} {
		for _, source := range []string{f.local("source"), f.share("source")} {
			must(t, os.MkdirAll(source+"/dir", 0o755))
			must(t, os.WriteFile(source+"/report", []byte("1"), 0o644))
			must(t, os.WriteFile(source+"/dir/file", []byte("12"), 0o644))
			must(t, os.MkdirAll(source+"/kinds", 0o755))
			must(t, os.WriteFile(source+"/kinds/file", []byte("1"), 0o644))
		}
		must(t, os.Mkdir(target+"/DIR", 0o755))
		must(t, os.MkdirAll(target+"/kinds/FILE", 0o755))
		for name, text := range map[string]string{
			"/REPORT": "1", "/DIR/FILE": "12", "/extra": "123", "/kinds/FILE/x": "1",
		} {
			must(t, os.WriteFile(target+name, []byte(text), 0o644))
		}
		f.expectCommand("sync --delete " + line)
		for name, text := range map[string]string{"/report": "1", "/dir/file": "12", "/kinds/file": "1"} {
			if got, err := os.ReadFile(target + name); err != nil || string(got) != text {
				t.Errorf("%s has %q: %v", target+name, got, err)
			}
		}
		for _, name := range []string{"/extra", "/kinds/file~"} {
			if _, err := os.Stat(target + name); err == nil {
				t.Errorf("%s has not been deleted", target+name)
			}
		}
	}
}

// mountExFAT makes a directory, and mounts a new exFAT on it.
func mountExFAT(t *testing.T, at string) {
	t.Helper()
	for _, program := range []string{"mkfs.exfat", "mount.exfat-fuse", "losetup"} {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			t.Skipf("mounting exFAT needs root, and %s: %v", program, err)
		}
	}
	must(t, os.Mkdir(at, 0o755))
	image := t.TempDir() + "/image"
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 8<<20))
	output(t, "mkfs.exfat", image)
	device, err := exec.Command("losetup", "-f", "--show", image).Output()
	if err != nil {
		t.Skipf("no loop device: %v", err)
	}
	loop := string(device[:len(device)-1])
	t.Cleanup(func() { output(t, "losetup", "-d", loop) })
	if text, err := exec.Command("mount.exfat-fuse", loop, at).CombinedOutput(); err != nil {
		t.Skipf("exFAT cannot be mounted here: %v: %s", err, text)
	}
	t.Cleanup(func() { must(t, unix.Unmount(at, 0)) })
}

// output runs a program that has to succeed.
func output(t *testing.T, name string, arguments ...string) {
	t.Helper()
	if text, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", name, err, text)
	}
}
