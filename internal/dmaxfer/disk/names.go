package disk

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The names of a NameList are in blocks, so that a growing list is never copied. A block holds for each name its length
// in one byte and then its bytes. A reference to a name is the number of its block and its offset there.
const (
	blockBits = 16
	blockSize = 1 << blockBits // of all blocks but the first ones
	maxBlocks = 1 << (32 - blockBits)
)

// NameList holds the names of a directory's entries, sorted bytewise. It takes five bytes for each name besides the
// name itself. Its methods may be called concurrently.
type NameList struct {
	refs   []uint32
	blocks [][]byte
	size   int
}

// Len returns the number of names.
func (l *NameList) Len() int { return len(l.refs) }

// Name returns name i, from 0. The string is a copy.
func (l *NameList) Name(i int) string { return string(l.at(l.refs[i])) }

// Size returns how many bytes of memory the list takes.
func (l *NameList) Size() int { return l.size }

// After returns the index of the first name that is sorted after the given one.
func (l *NameList) After(name string) int {
	i, found := slices.BinarySearchFunc(l.refs, name, func(ref uint32, name string) int {
		return strings.Compare(string(l.at(ref)), name)
	})
	if found {
		i++
	}
	return i
}

func (l *NameList) at(ref uint32) []byte {
	block := l.blocks[ref>>blockBits]
	start := int(ref%blockSize) + 1
	return block[start : start+int(block[start-1])]
}

// NewNameList returns the list of the given names, each of them at most 255 bytes long.
func NewNameList(names []string) (*NameList, error) {
	l := new(nameCollector)
	expected := 0
	for _, name := range names {
		expected += 1 + len(name)
	}
	for _, name := range names {
		if len(name) > maxNameLength {
			return nil, unix.ENAMETOOLONG
		}
		if err := l.add([]byte(name), expected); err != nil {
			return nil, err
		}
		expected -= 1 + len(name)
	}
	return l.sorted(), nil
}

// nameCollector makes a NameList of names in any order.
type nameCollector struct {
	blocks [][]byte
	count  int
	size   int
}

// add appends a name. expected is the number of bytes that are known to be needed from now on.
func (c *nameCollector) add(name []byte, expected int) error {
	last := len(c.blocks) - 1
	if last < 0 || cap(c.blocks[last])-len(c.blocks[last]) < 1+len(name) {
		if len(c.blocks) == maxBlocks {
			return fmt.Errorf("the names take more than %d bytes: %w", c.size, unix.EFBIG)
		}
		// The blocks of a small directory have the size of its names, and those of a large one are few.
		size := min(max(expected, 2*c.size), blockSize)
		c.blocks = append(c.blocks, make([]byte, 0, size))
		c.size += size
		last++
	}
	c.blocks[last] = append(append(c.blocks[last], byte(len(name))), name...)
	c.count++
	return nil
}

func (c *nameCollector) sorted() *NameList {
	l := &NameList{refs: make([]uint32, 0, c.count), blocks: c.blocks, size: c.size + 4*c.count}
	for i, block := range c.blocks {
		for offset := 0; offset < len(block); offset += 1 + int(block[offset]) {
			l.refs = append(l.refs, uint32(i)<<blockBits|uint32(offset))
		}
	}
	slices.SortFunc(l.refs, func(a, b uint32) int { return bytes.Compare(l.at(a), l.at(b)) })
	return l
}
