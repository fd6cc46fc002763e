// Package bundle makes the archive for a bug report: parts with names, facts about the machine, and file names hidden.
//
// It knows no command. The caller makes the parts from the output of commands; nothing here opens a device or connects
// to a peer.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// MaxPart limits the parts that are read from files, in bytes: the end of a longer file is kept.
const MaxPart = 64 << 20

// Part is one file of the archive.
type Part struct {
	Name    string // path in the archive
	About   string // what it is, in a few words
	Content []byte
}

// List returns the parts as lines of a table: name, size, what it is.
func List(parts []Part) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, p := range parts {
		fmt.Fprintf(table, "%s\t%s\t%s\n", quote.Printable(p.Name), quantity.Bytes(uint64(len(p.Content))), p.About)
	}
	_ = table.Flush() // a strings.Builder takes everything
	return text.String()
}

// Write writes the parts as a .tar.gz, all below one directory and with one time.
func Write(w io.Writer, directory string, at time.Time, parts []Part) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, p := range parts {
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: directory + "/" + p.Name, Mode: 0o644, ModTime: at,
			Size: int64(len(p.Content)),
		}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := archive.Write(p.Content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// ReadEnd returns the content of a regular file, the last MaxPart bytes of a longer one. It refuses a FIFO, for whose
// writer it would have to wait.
func ReadEnd(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > MaxPart {
		if _, err := file.Seek(-MaxPart, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(file, MaxPart))
}
