package e2e

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// randomStream returns an endless stream of random bytes. The same seed gives the same bytes.
func randomStream(seed string) io.Reader {
	key := sha256.Sum256([]byte(seed))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // a key of another length
	}
	return keyStream{cipher.NewCTR(block, make([]byte, aes.BlockSize))}
}

// keyStream reads the key stream of a cipher.
type keyStream struct{ cipher.Stream }

func (k keyStream) Read(into []byte) (int, error) {
	clear(into)
	k.XORKeyStream(into, into)
	return len(into), nil
}

// writeRandomFile makes a file of size random bytes.
func writeRandomFile(path, seed string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(file, randomStream(seed), size)
	return errors.Join(err, file.Close())
}

// compareFiles returns an error that says where two files begin to differ.
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
	const blockSize = 1 << 20
	a, b := bufio.NewReaderSize(one, blockSize), bufio.NewReaderSize(other, blockSize)
	for offset := int64(0); ; {
		x, errX := a.Peek(blockSize)
		y, errY := b.Peek(blockSize)
		if !bytes.Equal(x, y) {
			return fmt.Errorf("the files differ within %d bytes at offset %d (%d and %d bytes there)",
				blockSize, offset, len(x), len(y))
		}
		if errX != nil || errY != nil {
			return errors.Join(ignoreEOF(errX), ignoreEOF(errY))
		}
		n, err := a.Discard(len(x))
		if _, errB := b.Discard(len(y)); err != nil || errB != nil {
			return errors.Join(err, errB)
		}
		offset += int64(n)
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
