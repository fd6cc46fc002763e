package ucx

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The files of shared memory have names, because a confined process must not open files of others in /proc, and remain
// if their process is killed. So each context has a directory for its files. Its lock ends with the process, in any
// namespace, and the next context of the same user removes a directory without a lock.
const (
	sharedMemory       = "/dev/shm"
	sharedMemoryPrefix = "dma-copy-ucx-"
	sharedMemoryFiles  = "ucx_shm_posix_"
	sharedMemoryTries  = 10
)

// sharesMemory reports whether a context with these settings may use files of shared memory.
func (s Settings) sharesMemory() bool {
	return len(s.Transports) == 0 || slices.ContainsFunc(s.Transports, func(name string) bool {
		return slices.Contains([]string{"posix", "shm", "sm", "all"}, name)
	})
}

// fewReceiveBuffers are options of UCX. By default a worker writes to each of 512 buffers of 8 KiB when it is opened;
// it needs as many as its queue has entries, 64, and over shared memory receives little more than the connection.
var fewReceiveBuffers = []option{{"POSIX_RX_BUFS_GROW", "72"}, {"SYSV_RX_BUFS_GROW", "72"}}

// memoryDirectory is the directory of a context, which is locked while it is open.
type memoryDirectory struct {
	path string
	lock *os.File
}

// newMemoryDirectory removes what dead processes have left in root, and makes a directory there.
func newMemoryDirectory(root string) (*memoryDirectory, error) {
	removeUnlocked(root)
	for range sharedMemoryTries {
		// Paths have one length: UCX 1.13 assumes that the peer's path is as long as its own.
		path := filepath.Join(root, fmt.Sprintf("%s%08x", sharedMemoryPrefix, rand.Uint32()))
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("directory for shared memory: %w", err)
		}
		if d := lockDirectory(path); d != nil {
			return d, nil
		}
	}
	return nil, fmt.Errorf("directory for shared memory: other processes use those in %s", root)
}

// withinSharedMemory reports whether a range of addresses is within one mapping of shared memory of UCX's.
func withinSharedMemory(start, length uintptr) (bool, error) {
	mappings, err := os.Open("/proc/self/maps")
	if err != nil {
		return false, err
	}
	defer mappings.Close() // only read
	lines := bufio.NewScanner(mappings)
	for lines.Scan() {
		first, end, shared := sharedMapping(lines.Text())
		if shared && start >= first && start < end {
			return length <= end-start, nil
		}
	}
	return false, lines.Err()
}

// sharedMapping parses a line of /proc/self/maps, and reports whether it is a mapping that UCX shares:
//
//	7f5c0a000000-7f5c0a200000 rw-s 00000000 00:19 25 /dev/shm/dma-copy-ucx-0a1b2c3d/ucx_shm_posix_5e
func sharedMapping(line string) (start, end uintptr, shared bool) {
	var permissions, offset, device, inode, path string
	n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %s %s", &start, &end, &permissions, &offset, &device, &inode, &path)
	const fields, systemV = 7, "/SYSV"
	shared = n == fields && strings.HasSuffix(permissions, "s") &&
		(strings.Contains(path, sharedMemoryFiles) || strings.HasPrefix(path, systemV))
	return start, end, shared
}

// options are UCX's options that choose the directory. UCX 1.13 knows the option without the name of the transport.
func (d *memoryDirectory) options() []option { return []option{{"DIR", d.path}, {"POSIX_DIR", d.path}} }

// lockDirectory returns nil if another process has the lock, or if the directory is gone, is no directory, or belongs
// to another user.
func lockDirectory(path string) *memoryDirectory {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	d := &memoryDirectory{path: path, lock: os.NewFile(uintptr(fd), path)}
	var opened, named unix.Stat_t
	if unix.Fstat(fd, &opened) != nil || int(opened.Uid) != os.Geteuid() ||
		unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil || unix.Lstat(path, &named) != nil ||
		opened.Ino != named.Ino {
		_ = d.lock.Close()
		return nil
	}
	return d
}

// Close removes the directory, and the files that UCX has not removed. It is no error if another process has removed
// it, as systemd does with RemoveIPC=.
func (d *memoryDirectory) Close() error {
	defer d.lock.Close()
	if err := d.remove(); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *memoryDirectory) remove() error {
	names, err := d.lock.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, sharedMemoryFiles) {
			_ = unix.Unlinkat(int(d.lock.Fd()), name, 0)
		}
	}
	return os.Remove(d.path)
}

// removeUnlocked removes the directories of dead processes of this user. Errors are left to the next context.
func removeUnlocked(root string) {
	found, _ := filepath.Glob(filepath.Join(root, sharedMemoryPrefix+"*"))
	for _, path := range found {
		if d := lockDirectory(path); d != nil {
			_ = d.Close()
		}
	}
}
