// Package bundle makes the archive for a bug report: parts with names, facts about the machine, and file names hidden.
//
// It knows no command. The caller makes the parts from the output of commands; nothing here opens a device or connects
// to a peer.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
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

// sentPart is a part on its way to the other side.
type sentPart struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

const cutMark = "\n(the rest is cut)\n"

// Pack returns parts for the other side, as JSON of at most limit bytes. The longest are cut to fit.
func Pack(parts []Part, limit int) []byte {
	sent := make([]sentPart, len(parts))
	for i, p := range parts {
		sent[i] = sentPart{p.Name, strings.ToValidUTF8(string(p.Content), "?")}
	}
	for {
		packed, err := json.Marshal(sent)
		if err != nil {
			panic(err) // strings always can be encoded
		}
		if len(packed) <= limit || len(sent) == 0 {
			return packed
		}
		longest := 0
		for i := range sent {
			if len(sent[i].Text) > len(sent[longest].Text) {
				longest = i
			}
		}
		text := sent[longest].Text
		sent[longest].Text = strings.ToValidUTF8(text[:len(text)/2], "") + cutMark
	}
}

// partName matches what the other side may call its parts.
var partName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}\.[a-z]{1,8}$`)

// maxParts is how many parts the other side may send.
const maxParts = 32

// Unpack returns the parts of the other side, which has packed them, below the directory peer.
func Unpack(packed []byte) ([]Part, error) {
	var sent []sentPart
	if err := json.NewDecoder(bytes.NewReader(packed)).Decode(&sent); err != nil {
		return nil, fmt.Errorf("read the parts of the other side: %w", err)
	}
	names := map[string]bool{}
	var parts []Part
	for _, p := range sent {
		if !partName.MatchString(p.Name) || names[p.Name] || len(names) == maxParts {
			return nil, fmt.Errorf("the other side sent more than %d parts, or one with the name %q", maxParts, p.Name)
		}
		names[p.Name] = true
		parts = append(parts, Part{"peer/" + p.Name, "the same of the other side", []byte(p.Text)})
	}
	return parts, nil
}
