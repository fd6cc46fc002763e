//go:build cgo

package main

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The code and the constants of the program are mapped as a whole when it starts, by package preload.
func TestProgramIsMapped(t *testing.T) {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(page) }()
	if errors.Is(unix.Madvise(page, unix.MADV_POPULATE_READ), unix.EINVAL) {
		t.Skip("this kernel cannot map pages in advance")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	size, mapped := constantOf(t, program)
	if size == 0 || mapped != size {
		t.Errorf("%d of %d KiB of %s are mapped", mapped, size, program)
	}
}

// constantOf returns how much memory this process has of a file that it cannot write, and how much of that is mapped,
// in KiB.
func constantOf(t *testing.T, file string) (size, mapped int) {
	t.Helper()
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = maps.Close() }()
	within := false
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			within = fields[len(fields)-1] == file && !strings.Contains(fields[1], "w")
		case within && fields[0] == "Size:":
			size += kibibytes(t, fields[1])
		case within && fields[0] == "Rss:":
			mapped += kibibytes(t, fields[1])
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return size, mapped
}

func kibibytes(t *testing.T, number string) int {
	t.Helper()
	n, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
