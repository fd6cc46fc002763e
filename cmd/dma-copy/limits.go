package main

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
)

// leastDescriptors is how many files, sockets and event handles may be open at once in a copy, with some to spare: a
// DPU that receives has about 30 of its own.
const leastDescriptors = 48

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
	hint := report.HintProcessFiles
	if errors.Is(err, unix.ENFILE) {
		hint = report.HintSystemFiles
	}
	return exit.Errorf(exit.Usage, hint, "cannot open enough files: %d of %d file descriptors are free (%w)",
		free, leastDescriptors, err)
}
