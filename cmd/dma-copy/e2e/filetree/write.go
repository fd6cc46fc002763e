package filetree

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Write makes the tree as root, which must not exist. It flushes nothing. It returns the cause of ctx if that ends.
func (t *Tree) Write(ctx context.Context, root string) error {
	w := writer{root: root, noise: newNoise()}
	if err := os.Mkdir(root, directoryMode.Perm()); err != nil {
		return err
	}
	for i, n := range t.nodes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.write(n, i); err != nil {
			return err
		}
	}
	return w.setDirectoryTimes(t.nodes)
}

// writer writes the nodes of a tree.
type writer struct {
	root  string
	noise []byte
}

// newNoise returns random bytes, which no file system can compress: at every offset below maxSourceSize there is enough
// for a file.
func newNoise() []byte {
	noise := make([]byte, 2*maxSourceSize)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(noise) // never fails
	return noise
}

func (w writer) write(n node, number int) error {
	path := filepath.Join(w.root, n.path)
	switch n.mode.Type() {
	case fs.ModeDir:
		return errors.Join(os.Mkdir(path, n.mode.Perm()), os.Chmod(path, n.mode.Perm()))
	case fs.ModeSymlink:
		return errors.Join(os.Symlink(n.link, path), setModified(path, number))
	default:
		return errors.Join(os.WriteFile(path, w.content(n.size, number), n.mode.Perm()),
			os.Chmod(path, n.mode.Perm()), setModified(path, number))
	}
}

// content returns the bytes of a file, which are valid until the next call. Different files have different bytes.
func (w writer) content(size int64, number int) []byte {
	at := int64(number) * 4099 % maxSourceSize
	content := w.noise[at : at+size]
	if size >= 8 {
		binary.LittleEndian.PutUint64(content, uint64(number))
	}
	return content
}

// setDirectoryTimes sets the times of directories after their content has been made, which changes them.
func (w writer) setDirectoryTimes(nodes []node) error {
	for i, n := range nodes {
		if n.mode.IsDir() {
			if err := setModified(filepath.Join(w.root, n.path), i); err != nil {
				return err
			}
		}
	}
	return setModified(w.root, len(nodes))
}

// setModified sets a time in the past that differs from node to node, in seconds and in nanoseconds.
func setModified(path string, number int) error {
	modified := time.Unix(1_600_000_000+61*int64(number), int64(number)*7919%1e9)
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(modified.UnixNano())}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "utimensat", Path: path, Err: err}
	}
	return nil
}
