package tree

import (
	"errors"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// WalkCursor goes through a tree in step with paths that come in the order of Walk. One goroutine uses it.
type WalkCursor struct {
	walk *Walk
	next *Entry // nil at the end
}

// OpenCursor opens a tree as Open does, and finds its root.
func OpenCursor(on disk.FS, path string, o Options) (*WalkCursor, error) {
	walk, err := Open(on, path, o)
	if err != nil {
		return nil, err
	}
	c := &WalkCursor{walk: walk}
	if err := c.advance(); err != nil {
		walk.Close()
		return nil, err
	}
	return c, nil
}

func (c *WalkCursor) advance() error {
	c.next = nil
	found, err := c.walk.Next()
	switch {
	case err == nil:
		c.next = &found
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// Next returns the next entry, which the caller releases; nil at the end. An error is the one of the walk.
func (c *WalkCursor) Next() (*Entry, error) {
	entry := c.next
	if entry == nil {
		return nil, nil
	}
	if err := c.advance(); err != nil {
		entry.Release()
		return nil, err
	}
	return entry, nil
}

// UpTo is Next, but returns nil if the next entry comes after a path.
func (c *WalkCursor) UpTo(path string) (*Entry, error) {
	if c.next == nil || comparePaths(c.next.Path(), path) > 0 {
		return nil, nil
	}
	return c.Next()
}

// Close ends the walk, and releases the entry that Next has not returned.
func (c *WalkCursor) Close() {
	if c.next != nil {
		c.next.Release()
	}
	c.walk.Close()
}
