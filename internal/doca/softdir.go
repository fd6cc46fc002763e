package doca

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/doca/internal/softdev"
)

// SoftDir is the runtime directory of the software device as it is found. Looking at it changes nothing: no directory is
// made, no dead socket removed, and a server that is called by a look does not tell its program.
type SoftDir struct {
	Path    string
	Exists  bool
	Owner   int         // user id
	Trusted bool        // the owner is this user or one of DMA_COPY_SOFT_USERS
	Mode    fs.FileMode // type and permissions
	Sockets []SoftSocket
}

// SoftSocket is a socket of the software device.
type SoftSocket struct {
	File  string // its name in the directory
	Stale bool   // whoever made it is dead
}

// InspectSoftDir looks at the runtime directory dir, or at the one that would be used if it is empty. An error means that
// the directory is there and cannot be read, or cannot be there. ErrNoCgo.
func InspectSoftDir(dir string) (SoftDir, error) {
	path, err := softdev.Directory(dir)
	if err != nil {
		return SoftDir{}, err
	}
	found := SoftDir{Path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, nil
	case err != nil:
		return found, err
	}
	found.Exists, found.Owner, found.Mode = true, int(info.Sys().(*syscall.Stat_t).Uid), info.Mode()
	found.Trusted = softdev.TrustsUser(uint32(found.Owner))
	if !info.IsDir() {
		return found, nil
	}
	found.Sockets, err = readSockets(path)
	return found, err
}

// readSockets holds the directory's lock, as the software device does: a socket that is bound and does not listen yet
// looks like a dead one.
func readSockets(path string) ([]SoftSocket, error) {
	unlock := lockSoftDir(path)
	defer unlock()
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var sockets []SoftSocket
	for _, entry := range entries {
		if entry.Type() == fs.ModeSocket && isSoftSocket(entry.Name()) {
			file := path + "/" + entry.Name()
			sockets = append(sockets, SoftSocket{File: entry.Name(), Stale: isStaleSocket(file)})
		}
	}
	return sockets, nil
}

// How long a look waits for the directory's lock, which is held for moments. Whoever holds it for longer is stopped, and
// then the look goes on without it.
const (
	lockTries = 100
	lockPause = time.Millisecond
)

// lockSoftDir does not make the lock's file: without it nobody has made a socket.
func lockSoftDir(path string) (unlock func()) {
	lock, err := os.OpenFile(path+"/lock", os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return func() {}
	}
	for range lockTries {
		if unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
			break
		}
		time.Sleep(lockPause)
	}
	return func() { _ = lock.Close() }
}

func isSoftSocket(name string) bool {
	return strings.HasPrefix(name, "comch.") || strings.HasPrefix(name, "mem.")
}

// isStaleSocket calls and hangs up at once, which the software device's servers see every time a process of its comes.
func isStaleSocket(file string) bool {
	fd, err := unix.Open(file, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	caller, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(caller)
	// By way of the descriptor, because the address of a socket is too short for many a directory's name.
	err = unix.Connect(caller, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d", fd)})
	return errors.Is(err, unix.ECONNREFUSED)
}

// Servers lists the PCI addresses of the devices on which a live process serves the host function at a PCI address, in
// either form, under the server name. ErrBadAddress.
func (d SoftDir) Servers(hostFunction, name string) ([]string, error) {
	function, err := ParsePCIAddress(hostFunction)
	if err != nil {
		return nil, err
	}
	var devices []string
	prefix := "comch." + function + "."
	for _, socket := range d.Sockets {
		rest, ours := strings.CutPrefix(socket.File, prefix)
		if !ours || socket.Stale || len(rest) < len(function) {
			continue
		}
		if device := rest[:len(function)]; softdev.ServerFile(function, device, name) == socket.File {
			devices = append(devices, device)
		}
	}
	return devices, nil
}
