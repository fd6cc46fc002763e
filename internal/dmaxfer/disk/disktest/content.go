package disktest

import (
	"io"
	"io/fs"
	"maps"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

const pageSize = 4096

type page [pageSize]byte

// zeroPage is a page that was allocated and never written.
var zeroPage page

// content is the content and attributes of a file. Pages are replaced and never modified, so clone copies only the
// map.
type content struct {
	pages    map[int64]*page // absent: a hole
	size     int64
	mode     fs.FileMode
	uid, gid uint32
	modified disk.Timestamp
	xattrs   map[string]string
}

func (c *content) clone() *content {
	copied := *c
	copied.pages, copied.xattrs = maps.Clone(c.pages), maps.Clone(c.xattrs)
	return &copied
}

func (c *content) readAt(p []byte, offset int64) (int, error) {
	n := int(min(int64(len(p)), max(c.size-offset, 0)))
	for done := 0; done < n; {
		at := offset + int64(done)
		from := zeroPage[at%pageSize:]
		if found := c.pages[at/pageSize]; found != nil {
			from = found[at%pageSize:]
		}
		done += copy(p[done:n], from)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (c *content) writeAt(p []byte, offset int64) {
	for done := 0; done < len(p); {
		at := offset + int64(done)
		fresh := new(page)
		if old := c.pages[at/pageSize]; old != nil {
			*fresh = *old
		}
		done += copy(fresh[at%pageSize:], p[done:])
		c.pages[at/pageSize] = fresh
	}
	c.size = max(c.size, offset+int64(len(p)))
}

func (c *content) truncate(size int64) {
	if size < c.size {
		c.punch(size, c.size-size)
		c.size = size
		maps.DeleteFunc(c.pages, func(i int64, _ *page) bool { return i*pageSize >= size })
		return
	}
	c.size = size
}

func (c *content) allocate(offset, length int64) {
	for i := offset / pageSize; i*pageSize < offset+length; i++ {
		if c.pages[i] == nil {
			c.pages[i] = &zeroPage
		}
	}
	c.size = max(c.size, offset+length)
}

// punch removes whole pages and clears parts of others.
func (c *content) punch(offset, length int64) {
	end := offset + length
	maps.DeleteFunc(c.pages, func(i int64, _ *page) bool { return i*pageSize >= offset && (i+1)*pageSize <= end })
	for _, i := range [2]int64{offset / pageSize, end / pageSize} {
		if old := c.pages[i]; old != nil {
			fresh := *old
			from, to := max(offset-i*pageSize, 0), min(end-i*pageSize, pageSize)
			if from < to {
				clear(fresh[from:to])
			}
			c.pages[i] = &fresh
		}
	}
}

// next returns the offset of the first byte at or after offset that is data, or in a hole.
func (c *content) next(offset int64, data bool) int64 {
	for at := offset; at < c.size; at = (at/pageSize + 1) * pageSize {
		if (c.pages[at/pageSize] != nil) == data {
			return at
		}
	}
	return c.size
}
