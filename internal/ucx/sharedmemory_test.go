//go:build ucx && cgo

package ucx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// directoryOf returns the directory of the shared memory that a process has mapped.
func directoryOf(t *testing.T, pid int) string {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if _, path, found := strings.Cut(strings.TrimSpace(line), " "+sharedMemory+"/"+sharedMemoryPrefix); found {
			return filepath.Dir(filepath.Join(sharedMemory, sharedMemoryPrefix+path))
		}
	}
	t.Fatalf("process %d has no shared memory", pid)
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// What a killed process leaves is removed by the next one, whichever that is. What others use is not.
func TestSharedMemoryOfAKilledProcess(t *testing.T) {
	tls := transports["shared memory"]
	killed, alive := startPeer(t, "owner", tls), startPeer(t, "owner", tls)
	left, used := directoryOf(t, killed.command.Process.Pid), directoryOf(t, alive.command.Process.Pid)
	killed.kill(t)
	newSide(t, Settings{Transports: tls})
	for start := time.Now(); exists(left); time.Sleep(time.Millisecond) { // another process may be about to remove it
		if time.Since(start) > limit {
			t.Fatalf("%s of a killed process is still there", left)
		}
	}
	newReader(t, alive, tls)
	if err := alive.stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := alive.command.Wait(); err != nil || exists(used) {
		t.Errorf("%s is there after the end of its process: %t, %v", used, exists(used), err)
	}
}

func TestDirectoriesOfOthersStay(t *testing.T) {
	root := t.TempDir()
	own, err := newMemoryDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	dead, file := filepath.Join(root, sharedMemoryPrefix+"dead"), filepath.Join(root, sharedMemoryPrefix+"file")
	full, link := filepath.Join(root, sharedMemoryPrefix+"full"), filepath.Join(root, sharedMemoryPrefix+"link")
	another := filepath.Join(root, "another")
	for _, path := range []string{dead, full, another} {
		for _, err := range []error{
			os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, sharedMemoryFiles+"1"), nil, 0o600),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, err := range []error{
		os.WriteFile(file, nil, 0o600), os.Symlink(another, link),
		os.WriteFile(filepath.Join(full, "foreign"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	removeUnlocked(root)
	for path, stays := range map[string]bool{
		own.path: true, dead: false, file: true, filepath.Join(full, "foreign"): true, link: true,
		filepath.Join(another, sharedMemoryFiles+"1"): true,
	} {
		if exists(path) != stays {
			t.Errorf("%s stays: %t", path, exists(path))
		}
	}
	if err := own.Close(); err != nil || exists(own.path) {
		t.Errorf("%s after its end: %v", own.path, err)
	}
}

// Another process may have removed the directory: that is no reason for a copy to fail.
func TestDirectoryIsGone(t *testing.T) {
	d, err := newMemoryDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.path); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestSharedMapping(t *testing.T) {
	const file = "/dev/shm/dma-copy-ucx-0a1b2c3d/ucx_shm_posix_5e"
	for line, want := range map[string]bool{
		"7f5c0a000000-7f5c0a200000 rw-s 00000000 00:19 25                         " + file:                 true,
		"7f5c0a000000-7f5c0a200000 rw-s 00000000 00:01 32768                      /SYSV00000000 (deleted)": true,
		"7f5c0a000000-7f5c0a200000 rw-p 00000000 00:19 25                         " + file:                 false,
		"7f5c0a000000-7f5c0a200000 rw-s 00000000 00:19 25                         /dev/shm/other":          false,
		"7f5c0a000000-7f5c0a200000 rw-p 00000000 00:00 0                          [heap]":                  false,
		"7f5c0a000000-7f5c0a200000 rw-s 00000000 00:00 0 ":                                                 false,
		"": false,
	} {
		start, end, shared := sharedMapping(line)
		if shared != want || shared && (start != 0x7f5c0a000000 || end != 0x7f5c0a200000) {
			t.Errorf("%q: %x to %x, %t", line, start, end, shared)
		}
	}
}
