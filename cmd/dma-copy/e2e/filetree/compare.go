package filetree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Comparison is what of two trees has to agree in addition to the names, types and content of their entries and the
// texts of symlinks. The zero value is ready to use.
type Comparison struct {
	Modes     bool          // permissions, set-id and sticky bits, of everything but symlinks
	Times     time.Duration // granularity in which the times of modification agree; 0: not compared
	Owners    bool          // user and group
	Xattrs    bool          // extended attributes of the namespace "user", of files and directories
	HardLinks bool          // which names share a file
	Holes     bool          // a file takes at most 1 MiB more of the disk than its original

	// WithoutSpecial expects FIFOs, sockets and devices to be left out of the copy.
	WithoutSpecial bool
}

// holeAllowance is what a copy of a sparse file may take of the disk in addition, for the edges of its holes.
const holeAllowance = 1 << 20

// Differences is the error about trees that differ.
type Differences struct {
	Count int
	First []string // one sentence for each of the first ones
}

const maxListed = 20

// Error returns the number of differences and the first ones.
func (d *Differences) Error() string {
	text := fmt.Sprintf("%d differences: %s", d.Count, strings.Join(d.First, "; "))
	if d.Count > len(d.First) {
		text += "; ..."
	}
	return text
}

func (d *Differences) add(path, format string, args ...any) {
	if d.Count++; len(d.First) < maxListed {
		d.First = append(d.First, fmt.Sprintf("%q ", path)+fmt.Sprintf(format, args...))
	}
}

// Compare returns a *Differences if the tree at got is not the same as the one at want. Other errors are errors of
// reading a tree, and the cause of ctx. Each of the two may also be a single file.
func (c Comparison) Compare(ctx context.Context, want, got string) error {
	wanted, err := List(ctx, want)
	if err != nil {
		return err
	}
	found, err := List(ctx, got)
	if err != nil {
		return err
	}
	r := run{Comparison: c, want: want, got: got, differences: &Differences{}, contents: newContents()}
	if err := r.compare(ctx, wanted, found); err != nil {
		return err
	}
	if r.differences.Count > 0 {
		return r.differences
	}
	return nil
}

// run is one comparison in progress.
type run struct {
	Comparison
	want, got   string
	differences *Differences
	contents    contents
}

func (r run) compare(ctx context.Context, wanted, found []Entry) error {
	left := byPath(found)
	wantedNames, foundNames := firstNames(wanted), firstNames(found)
	for _, w := range wanted {
		if r.WithoutSpecial && isSpecial(w.Mode) {
			continue
		}
		f, is := left[w.Path]
		if !is {
			r.differences.add(w.Path, "is missing")
			continue
		}
		delete(left, w.Path)
		if err := r.compareEntry(ctx, w, f); err != nil {
			return err
		}
		if one, other := wantedNames[w.Path], foundNames[w.Path]; r.HardLinks && one != other {
			r.differences.add(w.Path, "is the same file as %q, want %q", other, one)
		}
	}
	for _, f := range found { // in their order
		if _, is := left[f.Path]; is {
			r.differences.add(f.Path, "is additional")
		}
	}
	return nil
}

// firstNames returns the first name of the file of each name: that name itself unless it is a further hard link.
func firstNames(entries []Entry) map[string]string {
	first, names := map[uint64]string{}, map[string]string{}
	for _, e := range entries {
		if !e.Mode.IsRegular() {
			continue
		}
		if _, known := first[e.Inode]; !known {
			first[e.Inode] = e.Path
		}
		names[e.Path] = first[e.Inode]
	}
	return names
}

func (r run) compareEntry(ctx context.Context, w, f Entry) error {
	if w.Mode.Type() != f.Mode.Type() {
		r.differences.add(w.Path, "is %s, want %s", typeName(f.Mode), typeName(w.Mode))
		return nil
	}
	r.compareMetadata(w, f)
	if err := r.compareXattrs(w); err != nil {
		return err
	}
	switch {
	case w.Link != f.Link:
		r.differences.add(w.Path, "leads to %q, want %q", f.Link, w.Link)
	case w.Size != f.Size:
		r.differences.add(w.Path, "has %d bytes, want %d", f.Size, w.Size)
	case w.Mode.IsRegular():
		return r.compareContent(ctx, w, f)
	}
	return nil
}

func (r run) compareMetadata(w, f Entry) {
	const permissions = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	one, other := w.Mode&permissions, f.Mode&permissions
	if r.Modes && one != other && w.Mode.Type() != fs.ModeSymlink {
		r.differences.add(w.Path, "has mode %v, want %v", other, one)
	}
	if r.Times > 0 && !w.Modified.Truncate(r.Times).Equal(f.Modified.Truncate(r.Times)) {
		const layout = "2006-01-02T15:04:05.999999999Z07:00"
		r.differences.add(w.Path, "was modified at %s, want %s", f.Modified.Format(layout), w.Modified.Format(layout))
	}
	if r.Owners && (w.UID != f.UID || w.GID != f.GID) {
		r.differences.add(w.Path, "belongs to %d:%d, want %d:%d", f.UID, f.GID, w.UID, w.GID)
	}
}

func (r run) compareXattrs(w Entry) error {
	if !r.Xattrs || !w.Mode.IsRegular() && !w.Mode.IsDir() {
		return nil
	}
	one, err := userXattrs(filepath.Join(r.want, w.Path))
	if err != nil {
		return err
	}
	other, err := userXattrs(filepath.Join(r.got, w.Path))
	if err != nil {
		return err
	}
	if !maps.Equal(one, other) {
		r.differences.add(w.Path, "has the attributes %q, want %q", other, one)
	}
	return nil
}

// userXattrs returns the extended attributes of a path in the namespace "user", and none where the file system has
// none.
func userXattrs(path string) (map[string]string, error) {
	names := make([]byte, 64<<10) // the most that Linux has for one file, as for one value
	n, err := unix.Listxattr(path, names)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "listxattr", Path: path, Err: err}
	}
	values, value := map[string]string{}, make([]byte, 64<<10)
	for name := range strings.SplitSeq(string(names[:n]), "\x00") {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		n, err := unix.Getxattr(path, name, value)
		if err != nil {
			return nil, &fs.PathError{Op: "getxattr", Path: path, Err: err}
		}
		values[name] = string(value[:n])
	}
	return values, nil
}

func (r run) compareContent(ctx context.Context, w, f Entry) error {
	if r.Holes && f.Allocated > w.Allocated+holeAllowance {
		r.differences.add(w.Path, "takes %d bytes of the disk, want at most %d", f.Allocated, w.Allocated+holeAllowance)
	}
	at, err := r.contents.compare(ctx, filepath.Join(r.want, w.Path), filepath.Join(r.got, w.Path))
	if err == nil && at >= 0 {
		r.differences.add(w.Path, "differs at offset %d", at)
	}
	return err
}

func isSpecial(mode fs.FileMode) bool {
	return !mode.IsRegular() && !mode.IsDir() && mode.Type() != fs.ModeSymlink
}

func typeName(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symlink"
	case fs.ModeNamedPipe:
		return "a FIFO"
	case fs.ModeSocket:
		return "a socket"
	default:
		return "a device"
	}
}
