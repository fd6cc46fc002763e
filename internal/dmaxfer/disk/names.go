package disk

import (
	"bytes"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// The names of a NameList are in blocks, so that a growing list is never copied. A block holds for each name its length
// in one byte and then its bytes. A reference to a name is the number of its block and its offset there.
const (
	blockBits = 16
	blockSize = 1 << blockBits // of all blocks but the first ones
	maxBlocks = 1 << (32 - blockBits)
)

// NameList holds names of a directory's entries, sorted bytewise. It takes five bytes for each name besides the name
// itself. Its methods may be called concurrently.
type NameList struct {
	refs   []uint32
	blocks [][]byte
	size   int
	more   bool
}

// Len returns the number of names.
func (l *NameList) Len() int { return len(l.refs) }

// Name returns name i, from 0. The string is a copy.
func (l *NameList) Name(i int) string { return string(l.at(l.refs[i])) }

// Size returns how many bytes of memory the list takes.
func (l *NameList) Size() int { return l.size }

// More reports whether names that are sorted after the last one were left out.
func (l *NameList) More() bool { return l.more }

func (l *NameList) at(ref uint32) []byte {
	block := l.blocks[ref>>blockBits]
	start := int(ref%blockSize) + 1
	return block[start : start+int(block[start-1])]
}

// NewNameList returns the list of those of the given names that are sorted after a name, as Dir.List does.
func NewNameList(names []string, after string, limit int) (*NameList, error) {
	c := &nameCollector{after: after, limit: limit}
	expected := 0
	for _, name := range names {
		expected += 1 + len(name)
	}
	for _, name := range names {
		if len(name) > maxNameLength {
			return nil, unix.ENAMETOOLONG
		}
		if err := c.add([]byte(name), expected); err != nil {
			return nil, err
		}
		expected -= 1 + len(name)
	}
	return c.sorted(), nil
}

// nameCollector makes a NameList of names in any order.
type nameCollector struct {
	after string // names up to this one are left out
	limit int    // bytes that the list may take

	blocks [][]byte
	count  int
	size   int    // bytes of the blocks
	used   int    // those that have names
	cut    []byte // names from this one on are left out; nil: none
}

// add appends a name, unless it is left out. expected is the number of bytes that are known to be needed from now on.
func (c *nameCollector) add(name []byte, expected int) error {
	if string(name) <= c.after || c.cut != nil && bytes.Compare(name, c.cut) >= 0 {
		return nil
	}
	last := len(c.blocks) - 1
	if last < 0 || cap(c.blocks[last])-len(c.blocks[last]) < 1+len(name) {
		if len(c.blocks) == maxBlocks {
			return fmt.Errorf("the names take more than %d bytes: %w", c.size, unix.EFBIG)
		}
		// The blocks of a small directory have the size of its names, and those of a large one are few.
		size := min(max(expected, 2*c.size, 1+len(name)), blockSize)
		c.blocks = append(c.blocks, make([]byte, 0, size))
		c.size += size
		last++
	}
	c.blocks[last] = append(append(c.blocks[last], byte(len(name))), name...)
	c.count++
	c.used += 1 + len(name)
	if c.used+4*c.count > c.limit && c.count > 1 {
		return c.halve()
	}
	return nil
}

// halve leaves out the second half of the names that were collected.
func (c *nameCollector) halve() error {
	all := c.sorted()
	kept := all.refs[:len(all.refs)/2]
	half := &nameCollector{after: c.after, limit: c.limit, cut: bytes.Clone(all.at(all.refs[len(kept)]))}
	for _, ref := range kept {
		if err := half.add(all.at(ref), 0); err != nil {
			return err
		}
	}
	*c = *half
	return nil
}

func (c *nameCollector) sorted() *NameList {
	l := &NameList{refs: make([]uint32, 0, c.count), blocks: c.blocks, size: c.size + 4*c.count, more: c.cut != nil}
	for i, block := range c.blocks {
		for offset := 0; offset < len(block); offset += 1 + int(block[offset]) {
			l.refs = append(l.refs, uint32(i)<<blockBits|uint32(offset))
		}
	}
	slices.SortFunc(l.refs, func(a, b uint32) int { return bytes.Compare(l.at(a), l.at(b)) })
	return l
}
