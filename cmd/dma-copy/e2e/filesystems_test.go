package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fileSystem is a file system that a test mounts over a directory.
type fileSystem struct {
	// mount is a command for a shell that mounts it on $dir. $beside is an empty directory outside of it.
	mount      string
	programs   []string // that it runs, apart from mount(8) and losetup(8)
	noSymlinks bool
	compresses bool
}

// fileSystems are those that lack what most have: times in nanoseconds, hard links, a rename that does not replace,
// modes, or attributes that no cache holds back.
var fileSystems = map[string]fileSystem{
	"ext4_128": {
		programs: []string{"mkfs.ext4"},
		mount: `truncate -s 64M $beside/image && mkfs.ext4 -q -I 128 $beside/image &&
			mount -o loop $beside/image $dir && rmdir $dir/lost+found`,
	},
	"btrfs_compressed": {
		programs: []string{"mkfs.btrfs"}, compresses: true,
		mount: `truncate -s 256M $beside/image && mkfs.btrfs -q $beside/image &&
			mount -o loop,compress=zstd $beside/image $dir`,
	},
	"bindfs":            {programs: []string{"bindfs"}, mount: `bindfs $beside $dir`},
	"bindfs_fixed_mode": {programs: []string{"bindfs"}, mount: `bindfs -p 0750 --chmod-ignore $beside $dir`},
	"mergerfs": {
		programs: []string{"mergerfs"},
		mount:    `mkdir $beside/1 $beside/2 && mergerfs $beside/1:$beside/2 $dir`,
	},
	"sshfs": {
		programs: []string{"sshfs", "/usr/lib/openssh/sftp-server"},
		mount: `printf '#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n' > $beside/ssh && chmod +x $beside/ssh &&
			mkdir $beside/files && sshfs -o ssh_command=$beside/ssh peer:$beside/files $dir`,
	},
	// Once the device is detached it is freed when it is unmounted.
	"exfat_fuse": {
		programs: []string{"mkfs.exfat", "mount.exfat-fuse"}, noSymlinks: true,
		mount: `truncate -s 32M $beside/image && mkfs.exfat $beside/image && loop=$(losetup -f --show $beside/image) &&
			mount.exfat-fuse -o umask=077 $loop $dir && losetup -d $loop`,
	},
}

// mountFileSystem mounts a file system on a directory until the test ends. The test is skipped where it may not mount
// it, or where a program is missing, but the latter not in CI.
func mountFileSystem(t *testing.T, name, dir string) fileSystem {
	t.Helper()
	requireMount(t)
	for _, device := range []string{"/dev/fuse", "/dev/loop-control"} {
		if unix.Access(device, unix.R_OK|unix.W_OK) != nil {
			t.Skipf("mounting a file system takes %s", device)
		}
	}
	system := fileSystems[name]
	for _, program := range system.programs {
		if _, err := exec.LookPath(program); err != nil && os.Getenv("CI") != "true" {
			t.Skipf("%s is not installed", program)
		}
	}
	mount := exec.CommandContext(t.Context(), "sh", "-ec", system.mount)
	mount.Env = append(os.Environ(), "dir="+dir, "beside="+t.TempDir())
	output, err := mount.CombinedOutput()
	if strings.Contains(string(output), "unknown filesystem type") {
		t.Skipf("this kernel has no such file system: %s", output)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	t.Cleanup(func() {
		if unix.Unmount(dir, 0) != nil { // a process that was killed may not have closed its files yet
			must(t, unix.Unmount(dir, unix.MNT_DETACH))
		}
	})
	return system
}

// TestFileSystems pushes files and trees to a share on file systems of different kinds, and changes them.
func TestFileSystems(t *testing.T) {
	t.Parallel()
	for name := range fileSystems {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newDaemonFixture(t, "dpu")
			system := mountFileSystem(t, name, f.share())
			f.serve("")
			f.pushFiles()
			f.pushTree(system)
			if system.compresses {
				f.pushText()
			}
			f.writeOwnFiles()
		})
	}
}

// pushFiles pushes a file that is new, and others instead of it.
func (f *daemonFixture) pushFiles() {
	f.t.Helper()
	for i, size := range []int64{3 << 20, 3 << 20, 1000} { // the first two are received in chunks
		f.writeVersion("file", i, size)
		f.expectCommand("push --overwrite host/file :files/file")
		must(f.t, compareFiles(f.local("file"), f.share("file")))
		f.expectCommand("push --overwrite host/file :files/file").expectStderr("is already up to date")
	}
	expectOnly(f.t, f.share(), "file")
	must(f.t, os.Remove(f.share("file")))
}

// writeVersion writes a file on the side of the commands. The times of two versions are in different seconds, so that
// every file system stores different ones.
func (f *daemonFixture) writeVersion(name string, version int, size int64) {
	f.t.Helper()
	path := f.local(name)
	must(f.t, writeRandomFile(path, fmt.Sprint(name, version), size))
	must(f.t, os.Chtimes(path, time.Time{}, time.Unix(1_700_000_000+3*int64(version), 123_456_789)))
}

// pushTree pushes a tree, again, and after changes.
func (f *daemonFixture) pushTree(system fileSystem) {
	f.t.Helper()
	source, target := f.local("tree"), f.share("tree")
	must(f.t, os.MkdirAll(filepath.Join(source, "a", "b"), 0o755))
	for name, size := range map[string]int64{"empty": 0, "a/small": 3000, "a/b/executable": 10, "large": 3 << 20} {
		f.writeVersion("tree/"+name, 0, size)
	}
	must(f.t, os.Chmod(filepath.Join(source, "a/b/executable"), 0o755))
	if !system.noSymlinks {
		must(f.t, os.Symlink("a/small", filepath.Join(source, "link")))
	}
	f.expectCommand("push host/tree :files/tree")
	expectSameContent(f.t, source, target)
	f.expectCommand("sync --dry-run host/tree :files/tree").expectStderr(" 0 files, 0 B")
	f.expectCommand("sync host/tree :files/tree").expectStderr("is already up to date")
	must(f.t, os.Rename(filepath.Join(source, "large"), filepath.Join(source, "renamed")))
	f.writeVersion("tree/a/small", 1, 3000)
	f.expectCommand("sync --delete host/tree :files/tree")
	expectSameContent(f.t, source, target)
	expectOnly(f.t, f.share(), "tree")
}

// pushText pushes a file that the file system compresses.
func (f *daemonFixture) pushText() {
	f.t.Helper()
	const size = 16 << 20
	must(f.t, os.WriteFile(f.local("text"), bytes.Repeat([]byte("text that is compressed\n"), size/24), 0o600))
	before := f.usedByShare()
	f.expectCommand("push host/text :files/text")
	if used := f.usedByShare() - before; used > size/4 {
		f.t.Errorf("a file of %d bytes takes %d although it can be compressed", size, used)
	}
	must(f.t, os.Remove(f.share("text")))
}

// usedByShare returns how many bytes of the file system of the share are used.
func (f *daemonFixture) usedByShare() int64 {
	f.t.Helper()
	dir, err := os.Open(f.share())
	must(f.t, err)
	defer dir.Close()
	must(f.t, unix.Syncfs(int(dir.Fd())))
	var stat unix.Statfs_t
	must(f.t, unix.Fstatfs(int(dir.Fd()), &stat))
	return int64(stat.Blocks-stat.Bfree) * stat.Bsize
}

// expectSameContent expects two trees to have the same names, types, symlinks and content.
func expectSameContent(t *testing.T, source, target string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "diff", "-r", "--no-dereference", source, target).CombinedOutput()
	if err != nil {
		t.Errorf("the trees differ (%v): %s", err, output)
	}
}

// writeOwnFiles makes a manifest and a key, which are written like the targets of copies.
func (f *daemonFixture) writeOwnFiles() {
	f.t.Helper()
	must(f.t, os.Mkdir(f.share("keys"), 0o700))
	for _, command := range []struct {
		line string
		code int
	}{
		{"verify --write dpu/share/manifest host/tree", exitOK},
		{"verify --write dpu/share/manifest host/tree", exitTarget},
		{"verify --overwrite --write dpu/share/manifest host/tree", exitOK},
		{"keys new --keys dpu/share/keys", exitOK},
		{"keys new --keys dpu/share/keys", exitTarget},
	} {
		f.start(command.line, "dma-copy "+command.line).expectExitIn(command.code)
	}
	expectOnly(f.t, f.share(), "tree", "keys", "manifest")
	expectOnly(f.t, f.share("keys"), "identity.pem")
}
