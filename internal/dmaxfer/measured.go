package dmaxfer

import (
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// measuredFile returns the file of a measurement: that many bytes of memory, or a target that stores nothing.
func measuredFile(size int64, sends bool) *job.LocalFile {
	file := &job.LocalFile{FS: disk.OS, Path: "memory"}
	if file.Discards = !sends; sends {
		memory := measuredSource{size: size}
		file.Source = disk.NewSource(memory, memory.info())
	}
	return file
}

// measuredSource is the disk.File of the sender. A read leaves a buffer that has content as it is.
type measuredSource struct {
	disk.File // nil: a source is only read
	size      int64
}

func (f measuredSource) info() disk.Info {
	return disk.Info{Identity: disk.Identity{Size: f.size}, Mode: 0o600, Links: 1, Allocated: f.size}
}

// Name implements disk.File.
func (f measuredSource) Name() string { return "memory" }

// Info implements disk.File.
func (f measuredSource) Info() (disk.Info, error) { return f.info(), nil }

// ReadAt implements disk.File. A buffer that has no content yet gets some, so that its pages exist.
func (f measuredSource) ReadAt(p []byte, offset int64) (int, error) {
	if end := f.size - offset; end < int64(len(p)) {
		return int(max(end, 0)), io.EOF
	}
	if len(p) > 0 && p[len(p)-1] == 0 {
		for i := range p {
			p[i] = byte(i) | 1
		}
	}
	return len(p), nil
}

// NextData implements disk.File: there are no holes.
func (f measuredSource) NextData(offset int64) (int64, error) { return offset, nil }

// NextHole implements disk.File.
func (f measuredSource) NextHole(offset int64) (int64, error) {
	if offset >= f.size {
		return 0, io.EOF
	}
	return f.size, nil
}

// Close implements disk.File.
func (f measuredSource) Close() error { return nil }
