package filetree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
)

// contents compares files with buffers that it keeps.
type contents [2][]byte

func newContents() contents {
	const blockSize = 1 << 20
	return contents{make([]byte, blockSize), make([]byte, blockSize)}
}

// CompareFiles returns the offset of the first byte in which two files differ, or -1. Where one ends before the other,
// that is its size.
func CompareFiles(ctx context.Context, one, other string) (int64, error) {
	return newContents().compare(ctx, one, other)
}

func (c contents) compare(ctx context.Context, one, other string) (int64, error) {
	var files [2]*os.File
	for i, path := range []string{one, other} {
		file, err := os.Open(path)
		if err != nil {
			return 0, err
		}
		defer file.Close() // only read from
		files[i] = file
	}
	for offset := int64(0); ; {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		var blocks [2][]byte
		for i, file := range files {
			n, err := io.ReadFull(file, c[i])
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return 0, err
			}
			blocks[i] = c[i][:n]
		}
		if !bytes.Equal(blocks[0], blocks[1]) {
			return offset + commonPrefix(blocks[0], blocks[1]), nil
		}
		if len(blocks[0]) < len(c[0]) {
			return -1, nil
		}
		offset += int64(len(blocks[0]))
	}
}

func commonPrefix(one, other []byte) int64 {
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			return int64(i)
		}
	}
	return int64(min(len(one), len(other)))
}
