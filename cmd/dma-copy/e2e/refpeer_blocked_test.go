package e2e

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// From <linux/userfaultfd.h>.
const (
	uffdioAPI       = 0xc018aa3f
	uffdioRegister  = 0xc020aa00
	uffdVersion     = 0xaa
	registerMissing = 1
)

// blockedMemory registers memory behind a userfaultfd that is not served: a page of it that nothing was written to yet
// blocks everyone who touches it, be it from another process, until this process ends.
func (r *refpeer) blockedMemory(size int64, access doca.Access) (*doca.Region, error) {
	file, err := os.CreateTemp("/dev/shm", "refpeer")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := errors.Join(os.Remove(file.Name()), file.Truncate(size)); err != nil {
		return nil, err
	}
	region, err := r.dev.MapFile(file, size, access)
	if err != nil {
		return nil, err
	}
	return region, blockFaults(region.Address(), uint64(size))
}

// blockFaults leaves the descriptor open for as long as the process lives, and reports an access that blocks.
func blockFaults(address, length uint64) error {
	faults, _, number := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if number != 0 {
		return number
	}
	page := uint64(os.Getpagesize())
	length = (length + page - 1) / page * page
	api := struct{ version, features, ioctls uint64 }{version: uffdVersion}
	memory := struct{ start, length, mode, ioctls uint64 }{start: address, length: length, mode: registerMissing}
	if err := control(faults, uffdioAPI, unsafe.Pointer(&api)); err != nil {
		return err
	}
	if err := control(faults, uffdioRegister, unsafe.Pointer(&memory)); err != nil {
		return err
	}
	go func() {
		var fault [32]byte // is one struct uffd_msg
		if _, err := unix.Read(int(faults), fault[:]); err == nil {
			fmt.Fprintln(os.Stderr, `{"level":"info","message":"an access blocks"}`)
		}
	}()
	return nil
}

func control(fd, request uintptr, argument unsafe.Pointer) error {
	if _, _, number := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument)); number != 0 {
		return number
	}
	return nil
}

// mayBlockFaults is nil where this process may have a userfaultfd that catches the faults of system calls.
func mayBlockFaults() error {
	faults, _, number := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if number != 0 {
		return number
	}
	return unix.Close(int(faults))
}
