package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Descriptors in use count wherever they are below the limit.
func TestUnusedDescriptors(t *testing.T) {
	const first, count = 700, 40
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < first+count {
		t.Fatalf("the limit on file descriptors is %d (%v)", limit.Cur, err)
	}
	before, err := unusedDescriptors(first, count)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range []int{first, first + 7, first + count - 1} {
		opened, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, fd)
		if err != nil || opened != fd {
			t.Fatalf("file descriptor %d instead of %d (%v)", opened, fd, err)
		}
		defer func() { _ = unix.Close(opened) }()
	}
	if got, err := unusedDescriptors(first, count); err != nil || got != before-3 {
		t.Errorf("%d of %d are unused (%v), and %d before three were opened", got, count, err, before)
	}
}
