package service

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

const (
	removedSize = 4 // of a result, without its text
	// The flags of a REMOVE.
	removeKept  = 1
	removeFiles = 2
	removeAside = 4
)

// MaxRemovedText is how many bytes the text of a Removal has at most.
const MaxRemovedText = 128

// RemoveRequest is the content of a REMOVE: files, symlinks and empty directories below a place.
type RemoveRequest struct {
	Place Place
	Kept  bool     // Place is below the directory that the last copy has kept; FIFOs, sockets and devices, too
	Files bool     // a directory is not removed, and a path at which nothing is has the code AbortSource
	Aside bool     // files, symlinks and full directories are renamed like backups; not with Files
	Paths []string // below Place, none of them empty; removed in this order
}

// codecOfRemove returns the codec of a REMOVE whose paths follow.
func codecOfRemove(dst []byte, r RemoveRequest) wire.Codec {
	c := wire.Sending(dst, wire.TypeRemove)
	r.fields(&c)
	return c
}

// DecodeRemove decodes a REMOVE and appends its paths to dst. It fails with ErrMalformed.
func DecodeRemove(dst []string, msg []byte) (RemoveRequest, error) {
	c, r := wire.Receiving(msg, wire.TypeRemove), RemoveRequest{Paths: dst}
	for r.fields(&c); c.More(); {
		var path string
		c = removePathFields(&path, c)
		r.Paths = append(r.Paths, path)
	}
	return r, c.End()
}

// fields passes what comes before the paths.
func (r *RemoveRequest) fields(c *wire.Codec) {
	const exclusive = removeFiles | removeAside
	flags := byte(removeKept*wire.Bool(r.Kept) | removeFiles*wire.Bool(r.Files) | removeAside*wire.Bool(r.Aside))
	c.List(len(r.Paths))
	r.Place.fields(c, &flags, removeKept|exclusive)
	r.Kept, r.Files, r.Aside = flags&removeKept != 0, flags&removeFiles != 0, flags&removeAside != 0
	c.Verify(func() error {
		if r.Files && r.Aside {
			return wire.Malformed(wire.TypeRemove, "flags %#x exclude each other", flags)
		}
		return r.Place.check(wire.TypeRemove)
	})
}

func removePathFields(path *string, c wire.Codec) wire.Codec {
	size := wire.Length[uint16](&c, len(*path))
	c.Text(path, size)
	c.Verify(func() error { return checkRemovePath(*path) })
	return c
}

// checkRemovePath refuses the place itself, too.
func checkRemovePath(path string) error {
	if !wire.ValidPath([]byte(path)) {
		return wire.Malformed(wire.TypeRemove, "a path of %d bytes that nothing below the place can have", len(path))
	}
	return nil
}

// Removal is what became of one path of a REMOVE.
type Removal struct {
	Code wire.AbortCode // 0: it does not exist any more; otherwise one of the constants
	Text string         // why not, at most MaxRemovedText bytes as received, any bytes; empty with Code 0
}

// AppendRemoved appends a REMOVED in at most limit bytes, but at least 4 for each result. Texts are truncated to
// MaxRemovedText bytes, and to what the results after them leave.
func AppendRemoved(dst []byte, results []Removal, limit int) []byte {
	room := limit - wire.ListSize - removedSize*len(results) // for texts
	c := wire.Sending(dst, wire.TypeRemoved)
	c.List(len(results))
	for _, r := range results {
		r.Code, r.Text = optionalReason(r.Code, r.Text, max(0, min(MaxRemovedText, room)))
		room -= len(r.Text)
		c = r.fields(c)
	}
	return c.Bytes()
}

func (r *Removal) fields(c wire.Codec) wire.Codec {
	optionalReasonField(&c, &r.Code, &r.Text, MaxRemovedText)
	return c
}
