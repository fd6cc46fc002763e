package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// noise is a stream of bytes that no error leaves as it was and that the same seed makes again.
func noise(seed string) io.Reader {
	return rand.NewChaCha8(sha256.Sum256([]byte(seed)))
}

// writeNoise makes a file of size bytes of noise.
func writeNoise(path, seed string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(file, noise(seed), size)
	return errors.Join(err, file.Close())
}

// compareFiles says where two files begin to differ.
func compareFiles(one, other string) error {
	a, err := os.Open(one)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := os.Open(other)
	if err != nil {
		return err
	}
	defer b.Close()
	return compareStreams(a, b)
}

func compareStreams(one, other io.Reader) error {
	const step = 1 << 20
	a, b := bufio.NewReaderSize(one, step), bufio.NewReaderSize(other, step)
	for offset := int64(0); ; {
		x, errX := a.Peek(step)
		y, errY := b.Peek(step)
		if !bytes.Equal(x, y) {
			return fmt.Errorf("the files differ within the %d bytes from %d on (%d and %d bytes there)", step, offset, len(x), len(y))
		}
		if errX != nil || errY != nil {
			return errors.Join(notEOF(errX), notEOF(errY))
		}
		n, err := a.Discard(len(x))
		if _, errB := b.Discard(len(y)); err != nil || errB != nil {
			return errors.Join(err, errB)
		}
		offset += int64(n)
	}
}

func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
