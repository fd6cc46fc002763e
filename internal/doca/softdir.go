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

	"github.com/dma-copy/dma-copy/softdoca/device"
)

// SoftDir describes the runtime directory of the software device. Reading it changes nothing: no directory is created
// and no stale socket removed. Servers ignore the connections by which stale sockets are detected.
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
	Stale bool   // no live process listens
}

// InspectSoftDir reads the runtime directory dir, or the one that would be used if dir is empty. It fails if the
// directory exists and cannot be read, or cannot exist. ErrNoCgo.
func InspectSoftDir(dir string) (SoftDir, error) {
	path, err := device.Directory(dir)
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
	found.Trusted = device.TrustsUser(uint32(found.Owner))
	if !info.IsDir() {
		return found, nil
	}
	found.Sockets, err = readSockets(path)
	return found, err
}

// readSockets holds the lock of the directory, as the software device does: a socket that is bound and does not listen
// yet looks like a stale one.
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

// lockSoftDir does not create the lock file: without it no process has created a socket.
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

// isStaleSocket connects to the socket and hangs up at once, as the processes of the software device do to each other.
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
	// Addressed by the descriptor, because many paths are too long for a socket address.
	err = unix.Connect(caller, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d", fd)})
	return errors.Is(err, unix.ECONNREFUSED)
}

// Servers lists the PCI addresses of the devices on which a live process serves the host function under the server
// name. The function is named as for OpenDevice or OpenRepresentor. ErrBadAddress.
func (d SoftDir) Servers(hostFunction, name string) ([]string, error) {
	wanted, err := longName(hostFunction)
	if err != nil {
		return nil, err
	}
	function := device.FunctionKey(wanted)
	if function == "" {
		return nil, nil
	}
	var devices []string
	prefix := "comch." + function + "."
	for _, socket := range d.Sockets {
		rest, ours := strings.CutPrefix(socket.File, prefix)
		if !ours || socket.Stale || len(rest) < len(function) {
			continue
		}
		if address := rest[:len(function)]; device.ServerFile(function, address, name) == socket.File {
			devices = append(devices, address)
		}
	}
	return devices, nil
}
