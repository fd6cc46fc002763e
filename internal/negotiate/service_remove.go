package negotiate

import "encoding/binary"

const (
	removeSize     = 12 // without share, path and the paths to remove
	removePathSize = 2  // of one of these, without its bytes
	removedSize    = 4  // of a result, without its text
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

// AppendRemove appends a REMOVE without checking it.
func AppendRemove(dst []byte, r RemoveRequest) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeRemove), uint32(len(r.Paths)))
	flags := byte(removeKept*wireBool(r.Kept) | removeFiles*wireBool(r.Files) | removeAside*wireBool(r.Aside))
	dst = appendPlace(append(dst, byte(len(r.Place.Share)), flags), r.Place)
	for _, path := range r.Paths {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(path)))
		dst = append(dst, path...)
	}
	return dst
}

// DecodeRemove decodes a REMOVE and appends its paths to dst. It fails with ErrMalformed.
func DecodeRemove(dst []string, msg []byte) (RemoveRequest, error) {
	count, rest, err := listText(msg, TypeRemove, removeSize)
	if err != nil {
		return RemoveRequest{}, err
	}
	const exclusive = removeFiles | removeAside
	if flags := msg[9]; flags&^(removeKept|exclusive) != 0 || flags&exclusive == exclusive {
		return RemoveRequest{}, malformed(TypeRemove, "unknown flags %#x", msg[9])
	}
	share, path := int(msg[8]), int(binary.BigEndian.Uint16(msg[10:]))
	if len(rest) < share+path {
		return RemoveRequest{}, malformed(TypeRemove, "%d bytes for a place of %d", len(rest), share+path)
	}
	r := RemoveRequest{
		Place: Place{rest[:share], rest[share : share+path]},
		Kept:  msg[9]&removeKept != 0, Files: msg[9]&removeFiles != 0, Aside: msg[9]&removeAside != 0,
		Paths: dst,
	}
	if err := r.Place.check(TypeRemove); err != nil {
		return RemoveRequest{}, err
	}
	rest = rest[share+path:]
	for range count {
		if len(rest) < removePathSize {
			return RemoveRequest{}, malformed(TypeRemove, "%d bytes, too short for a path", len(rest))
		}
		length := removePathSize + (int(rest[0])<<8 | int(rest[1]))
		if len(rest) < length {
			return RemoveRequest{}, malformed(TypeRemove, "%d bytes for a path of %d", len(rest), length)
		}
		if err := checkRemovePath(rest[removePathSize:length]); err != nil {
			return RemoveRequest{}, err
		}
		r.Paths, rest = append(r.Paths, rest[removePathSize:length]), rest[length:]
	}
	if rest != "" {
		return RemoveRequest{}, malformed(TypeRemove, "%d bytes after %d paths", len(rest), count)
	}
	return r, nil
}

// checkRemovePath refuses the place itself, too.
func checkRemovePath(path string) error {
	if !validPath([]byte(path)) {
		return malformed(TypeRemove, "a path of %d bytes that nothing below the place can have", len(path))
	}
	return nil
}

// Removal is what became of one path of a REMOVE.
type Removal struct {
	Code AbortCode // 0: it does not exist any more; otherwise one of the constants
	Text string    // why not, at most MaxRemovedText bytes as received, any bytes; empty with Code 0
}

// known returns the removal with a code of the protocol.
func (r Removal) known() Removal {
	if r.Code == 0 {
		return Removal{}
	}
	return Removal{r.Code.known(), r.Text}
}

// AppendRemoved appends a REMOVED in at most limit bytes, but at least 4 for each result. Texts are truncated to
// MaxRemovedText bytes, and to what the results after them leave.
func AppendRemoved(dst []byte, results []Removal, limit int) []byte {
	room := limit - listSize - removedSize*len(results) // for texts
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeRemoved), uint32(len(results)))
	for _, r := range results {
		r = r.known()
		text := truncateText(r.Text, max(0, min(MaxRemovedText, room)))
		room -= len(text)
		dst = binary.BigEndian.AppendUint16(append(dst, byte(r.Code), 0), uint16(len(text)))
		dst = append(dst, text...)
	}
	return dst
}

// DecodeRemoved appends the results of a REMOVED to dst. It fails with ErrMalformed and returns dst unchanged.
func DecodeRemoved(dst []Removal, msg []byte) ([]Removal, error) {
	count, rest, err := listText(msg, TypeRemoved, listSize)
	if err != nil {
		return dst, err
	}
	results := dst
	for range count {
		if len(rest) < removedSize {
			return dst, malformed(TypeRemoved, "%d bytes, too short for a result", len(rest))
		}
		text := int(rest[2])<<8 | int(rest[3])
		switch {
		case rest[1] != 0:
			return dst, malformed(TypeRemoved, "padding that is not zero")
		case text > MaxRemovedText || rest[0] == 0 && text != 0:
			return dst, malformed(TypeRemoved, "a text of %d bytes with result %d", text, rest[0])
		case len(rest) < removedSize+text:
			return dst, malformed(TypeRemoved, "%d bytes for a result of %d", len(rest), removedSize+text)
		}
		r := Removal{AbortCode(rest[0]), rest[removedSize : removedSize+text]}
		results, rest = append(results, r.known()), rest[removedSize+text:]
	}
	if rest != "" {
		return dst, malformed(TypeRemoved, "%d bytes after %d results", len(rest), count)
	}
	return results, nil
}
