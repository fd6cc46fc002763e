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

// allocateBlocking registers memory with a userfaultfd whose faults are never handled: until this process ends, a page
// that was not written to yet blocks whatever accesses it, also from another process.
func (r *refpeer) allocateBlocking(size int64, access doca.Access) (*doca.Region, error) {
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

// blockFaults logs the first access that blocks. The descriptor stays open for as long as the process lives.
func blockFaults(address, length uint64) error {
	faults, _, number := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if number != 0 {
		return number
	}
	page := uint64(os.Getpagesize())
	length = (length + page - 1) / page * page
	api := struct{ version, features, ioctls uint64 }{version: uffdVersion}
	memory := struct{ start, length, mode, ioctls uint64 }{start: address, length: length, mode: registerMissing}
	if err := ioctl(faults, uffdioAPI, unsafe.Pointer(&api)); err != nil {
		return err
	}
	if err := ioctl(faults, uffdioRegister, unsafe.Pointer(&memory)); err != nil {
		return err
	}
	go func() {
		var fault [32]byte // one struct uffd_msg
		if _, err := unix.Read(int(faults), fault[:]); err == nil {
			fmt.Fprintln(os.Stderr, `{"level":"info","message":"an access blocks"}`)
		}
	}()
	return nil
}

func ioctl(fd, request uintptr, argument unsafe.Pointer) error {
	if _, _, number := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument)); number != 0 {
		return number
	}
	return nil
}

// canBlockFaults returns an error unless this process may have a userfaultfd that catches the faults of system calls.
func canBlockFaults() error {
	faults, _, number := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if number != 0 {
		return number
	}
	return unix.Close(int(faults))
}
