package disk

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// osFiller adds pages to a tmpfs file with userfaultfd(2). UFFDIO_COPY is meant for pages that a thread has touched,
// and also works for others. It locks the page and not the file. The mapping is only the destination of the ioctl and
// is never accessed.
type osFiller struct {
	faults int // descriptor
	mapped []byte
	page   int64
}

// From <linux/userfaultfd.h>. The numbers are the same on all architectures for which x/sys defines the system call.
const (
	uffdAPI          = 0xaa
	uffdUserModeOnly = 1
	uffdioAPI        = 0xc018aa3f
	uffdioRegister   = 0xc020aa00
	uffdioCopy       = 0xc028aa03

	registerMissing = 1 << 0 // enum mode of UFFDIO_REGISTER
	copyDontWake    = 1 << 0 // enum mode of UFFDIO_COPY
)

type uffdioAPIArgument struct{ api, features, ioctls uint64 }

type uffdioRegisterArgument struct{ start, length, mode, ioctls uint64 }

type uffdioCopyArgument struct {
	target, source, length, mode uint64
	copied                       int64
}

// Filler implements File for tmpfs.
func (f *osFile) Filler(size int64) (Filler, error) {
	var stat unix.Statfs_t
	if err := f.call("fstatfs", func(fd int) error { return unix.Fstatfs(fd, &stat) }); err != nil {
		return nil, err
	}
	if stat.Type != unix.TMPFS_MAGIC || size == 0 {
		return nil, errors.ErrUnsupported
	}
	filler := &osFiller{faults: -1, page: int64(os.Getpagesize())}
	if err := f.call("userfaultfd", func(fd int) error { return filler.open(fd, size) }); err != nil {
		_ = filler.Close()
		return nil, err
	}
	return filler, nil
}

func (f *osFiller) open(file int, size int64) (err error) {
	faults, _, number := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly, 0, 0)
	if number != 0 {
		return number
	}
	f.faults = int(faults)
	if err := f.control(uffdioAPI, unsafe.Pointer(&uffdioAPIArgument{api: uffdAPI})); err != nil {
		return err
	}
	f.mapped, err = unix.Mmap(file, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	length := (uint64(size) + uint64(f.page) - 1) / uint64(f.page) * uint64(f.page)
	return f.control(uffdioRegister, unsafe.Pointer(&uffdioRegisterArgument{
		start: f.address(0), length: length, mode: registerMissing,
	}))
}

func (f *osFiller) control(request uintptr, argument unsafe.Pointer) error {
	if _, _, number := unix.Syscall(unix.SYS_IOCTL, uintptr(f.faults), request, uintptr(argument)); number != 0 {
		return number
	}
	return nil
}

func (f *osFiller) address(offset int64) uint64 {
	return uint64(uintptr(unsafe.Pointer(&f.mapped[offset])))
}

// Fill implements Filler. It unmaps the pages again, because mapped pages count as memory of this process.
func (f *osFiller) Fill(buffer []byte, offset int64) int {
	whole := min(int64(len(buffer)), int64(len(f.mapped))-offset) / f.page * f.page
	if offset%f.page != 0 || whole <= 0 {
		return 0
	}
	filled := int64(0)
	for filled < whole {
		n := f.copy(buffer[filled:whole], offset+filled)
		if n <= 0 {
			break
		}
		filled += n
	}
	_ = unix.Madvise(f.mapped[offset:offset+whole], unix.MADV_DONTNEED) // without effect the pages only stay mapped
	return int(filled)
}

// copy adds pages up to the first one that exists already or for which there is no memory. The caller writes the rest
// with WriteAt, which reports the error.
func (f *osFiller) copy(buffer []byte, offset int64) int64 {
	argument := &uffdioCopyArgument{
		target: f.address(offset),
		source: uint64(uintptr(unsafe.Pointer(&buffer[0]))),
		length: uint64(len(buffer)),
		mode:   copyDontWake,
	}
	_ = f.control(uffdioCopy, unsafe.Pointer(argument)) // argument.copied has the result
	runtime.KeepAlive(buffer)
	return argument.copied
}

// Close implements Filler.
func (f *osFiller) Close() error {
	var unmapped error
	if f.mapped != nil {
		unmapped = unix.Munmap(f.mapped)
	}
	if f.faults < 0 {
		return unmapped
	}
	return errors.Join(unmapped, unix.Close(f.faults))
}
