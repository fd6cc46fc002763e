package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
)

// leastDescriptors is how many files, sockets and event handles may be open at once in a copy, with some to spare: a
// DPU that receives has about 30 of its own.
const leastDescriptors = 48

// What to do about descriptors that this process, or the whole system, has used up.
const (
	moreDescriptors = "raise the limit on open files (ulimit -n 1024)"
	moreFiles       = "raise the system's limit on open files (sysctl fs.file-max), or close some"
)

// errResources is a limit of the process or of the system that no copy can do with.
var errResources = errors.New("resource limit")

// checkDescriptors tries whether this process may open as many files as a copy needs. Later, the lack of them shows as
// a peer that never appears, or as a device that fails; and Go's runtime cannot do without its own.
func checkDescriptors() error {
	var opened []int
	defer func() {
		for _, fd := range opened {
			_ = unix.Close(fd)
		}
	}()
	for len(opened) < leastDescriptors {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			return tooFewDescriptors(len(opened), err)
		}
		opened = append(opened, fd)
	}
	return nil
}

func tooFewDescriptors(free int, err error) error {
	next := moreDescriptors
	if errors.Is(err, unix.ENFILE) {
		next = moreFiles
	}
	return resourceFailure(err, next, "cannot open enough files: %d of %d file descriptors are free (%s)",
		free, leastDescriptors, err)
}

func resourceFailure(err error, next, cause string, args ...any) error {
	return &dmaxfer.Error{Kind: errResources, Cause: fmt.Sprintf(cause, args...), Next: next, Err: err}
}
