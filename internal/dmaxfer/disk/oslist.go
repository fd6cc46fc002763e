package disk

import (
	"bytes"
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"
)

// listBufferSize is the number of bytes that are read of a directory at once.
const listBufferSize = 64 << 10

var listBuffers = sync.Pool{New: func() any { return new([listBufferSize]byte) }}

// List reads the directory without package os, which would return a slice of strings.
func (d *osDir) List(after string, limit int) (*NameList, error) {
	if err := retry(func() error { _, err := unix.Seek(d.fd(), 0, 0); return err }); err != nil {
		return nil, d.failed("list", ".", err)
	}
	buffer := listBuffers.Get().(*[listBufferSize]byte)
	defer listBuffers.Put(buffer)
	names := &nameCollector{after: after, limit: limit}
	for {
		n := 0
		err := retry(func() (err error) {
			n, err = unix.ReadDirent(d.fd(), buffer[:])
			return err
		})
		if err == nil && n == 0 {
			return names.sorted(), nil
		}
		if err == nil {
			err = names.addEntries(buffer[:n])
		}
		if err != nil {
			return nil, d.failed("list", ".", err)
		}
	}
}

// The layout of struct linux_dirent64.
const (
	direntLength = 16 // offset of the record's length
	direntName   = 19 // offset of the name, which ends with a zero byte
)

// addEntries adds the names in what getdents64(2) returned.
func (c *nameCollector) addEntries(records []byte) error {
	expected := 0
	for rest := records; len(rest) > 0; {
		name, after, err := cutEntry(rest)
		if err != nil {
			return err
		}
		expected += 1 + len(name)
		rest = after
	}
	for len(records) > 0 {
		name, after, _ := cutEntry(records) // the first pass has checked them
		if string(name) != "." && string(name) != ".." {
			if err := c.add(name, expected); err != nil {
				return err
			}
		}
		expected -= 1 + len(name)
		records = after
	}
	return nil
}

// cutEntry returns the name in the first record, and the records after it.
func cutEntry(records []byte) (name, after []byte, err error) {
	if len(records) <= direntName {
		return nil, nil, unix.EIO
	}
	length := int(binary.NativeEndian.Uint16(records[direntLength:]))
	if length <= direntName || length > len(records) {
		return nil, nil, unix.EIO
	}
	name = records[direntName:length]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	if len(name) > maxNameLength {
		return nil, nil, unix.ENAMETOOLONG
	}
	return name, records[length:], nil
}
