package negotiate

import (
	"encoding/binary"
	"strings"
)

const (
	placeRequestSize = 12 // without share and path
	listedSize       = 36 // of an entry, without name and link
	listEndSize      = 12 // without the text
)

// ListFlags are options of a LIST.
type ListFlags uint32

// The flags. ListRecursive and ListItself exclude each other.
const (
	ListRecursive ListFlags = 1 << iota // directories below the listed one, too
	ListItself                          // only the entry itself, even if it is a directory
	ListIdentify                        // Listed.File is set
	ListKept                            // Place is below the directory that the last copy has kept
	ListAll                             // FIFOs, sockets and devices, too, and Listed.Mounted is set

	knownListFlags = ListAll<<1 - 1
)

// Has reports whether all of the wanted flags are set.
func (f ListFlags) Has(wanted ListFlags) bool { return f&wanted == wanted }

// depth returns that of the deepest entry.
func (f ListFlags) depth() int {
	switch {
	case f.Has(ListRecursive):
		return maxLevel
	case f.Has(ListItself):
		return 0
	}
	return 1
}

// ListRequest is the content of a LIST.
type ListRequest struct {
	Flags ListFlags
	Place Place // zero: the shares, without flags
}

// AppendList appends a LIST without checking it.
func AppendList(dst []byte, l ListRequest) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeList), uint32(l.Flags))
	return appendPlace(append(dst, byte(len(l.Place.Share)), 0), l.Place)
}

// appendPlace appends the length of the path, the share and the path.
func appendPlace(dst []byte, p Place) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(p.Path)))
	return append(append(dst, p.Share...), p.Path...)
}

// decodePlace decodes a LIST or MKDIR, without checking the flags and the place.
func decodePlace(msg []byte, t Type) (flags uint32, p Place, err error) {
	if err := checkType(msg, t, placeRequestSize); err != nil {
		return 0, Place{}, err
	}
	share, path := int(msg[8]), int(binary.BigEndian.Uint16(msg[10:]))
	err = firstError(checkTail(msg, t, placeRequestSize, uint64(share+path)), checkPadding(t, msg[9:10]))
	if err != nil {
		return 0, Place{}, err
	}
	text := string(msg[placeRequestSize:])
	return binary.BigEndian.Uint32(msg[4:]), Place{text[:share], text[share:]}, nil
}

// DecodeList decodes a LIST. It fails with ErrMalformed.
func DecodeList(msg []byte) (ListRequest, error) {
	flags, place, err := decodePlace(msg, TypeList)
	if err != nil {
		return ListRequest{}, err
	}
	l := ListRequest{ListFlags(flags), place}
	if err := l.check(); err != nil {
		return ListRequest{}, err
	}
	return l, nil
}

func (l ListRequest) check() error {
	switch {
	case l.Flags&^knownListFlags != 0:
		return malformed(TypeList, "unknown flags %#x", uint32(l.Flags&^knownListFlags))
	case l.Flags.Has(ListRecursive | ListItself):
		return malformed(TypeList, "flags %#x exclude each other", uint32(l.Flags))
	case l == ListRequest{}:
		return nil
	}
	return l.Place.check(TypeList)
}

// Listed is an entry of a LISTED. The first one of a list, at depth 0, is what was asked for; if the list is that of
// the shares, it is a directory that has the shares as its entries. An entry's parent is the last one of the previous
// depth that was listed before it.
type Listed struct {
	Kind  EntryKind // but EntryHardLink; EntrySpecial with ListAll only
	Depth int       // at most 2048
	// Mode has permission bits, at most MaxMode. Those of a share are what the key may do: 0o400 read, 0o200 write.
	Mode  uint32
	MTime Timestamp
	// File is, with ListIdentify, a number that all names of one file have in the lists of a connection, and that
	// another file has with the probability of 2^-32. Otherwise it is 0.
	File uint32
	Size uint64 // bytes of a file; otherwise 0
	Name string // the last component of the path; empty at depth 0. May have any bytes but '/' and zero
	Link string // text of a symlink, 1 to MaxLink bytes; otherwise empty

	// Mounted is, with ListAll, whether a file system is mounted on a directory. At depth 0 it needs ListItself, too.
	Mounted bool
}

// AppendListed appends a LISTED without checking it.
func AppendListed(dst []byte, entries []Listed) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeListed), uint32(len(entries)))
	for i := range entries {
		dst = appendListed(dst, &entries[i])
	}
	return dst
}

func appendListed(dst []byte, e *Listed) []byte {
	dst = append(dst, byte(e.Kind), wireBool(e.Mounted))
	dst = binary.BigEndian.AppendUint16(dst, uint16(e.Depth))
	dst = binary.BigEndian.AppendUint32(dst, e.Mode)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.MTime.Sec))
	dst = binary.BigEndian.AppendUint32(dst, e.MTime.Nsec)
	dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(dst, e.File), e.Size)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(e.Name)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(e.Link)))
	return append(append(dst, e.Name...), e.Link...)
}

// DecodeListed appends the entries of a LISTED to dst. It checks everything that does not depend on other entries. It
// fails with ErrMalformed and returns dst unchanged.
func DecodeListed(dst []Listed, msg []byte) ([]Listed, error) {
	count, text, err := listText(msg, TypeListed, listSize)
	if err != nil {
		return dst, err
	}
	entries, rest := dst, msg[listSize:]
	for range count {
		e, length, err := decodeListed(rest, text)
		if err != nil {
			return dst, err
		}
		entries, rest, text = append(entries, e), rest[length:], text[length:]
	}
	if len(rest) != 0 {
		return dst, malformed(TypeListed, "%d bytes after %d entries", len(rest), count)
	}
	return entries, nil
}

// decodeListed decodes the first entry of b, of which text has the same bytes.
func decodeListed(b []byte, text string) (e Listed, length int, err error) {
	if len(b) < listedSize {
		return Listed{}, 0, malformed(TypeListed, "%d bytes, too short for an entry", len(b))
	}
	name := listedSize + int(binary.BigEndian.Uint16(b[32:])) // where it ends
	length = name + int(binary.BigEndian.Uint16(b[34:]))
	if len(b) < length {
		return Listed{}, 0, malformed(TypeListed, "%d bytes for an entry of %d", len(b), length)
	}
	e = Listed{
		Kind:  EntryKind(b[0]),
		Depth: int(binary.BigEndian.Uint16(b[2:])),
		Mode:  binary.BigEndian.Uint32(b[4:]),
		MTime: Timestamp{int64(binary.BigEndian.Uint64(b[8:])), binary.BigEndian.Uint32(b[16:])},
		File:  binary.BigEndian.Uint32(b[20:]),
		Size:  binary.BigEndian.Uint64(b[24:]),
		Name:  text[listedSize:name],
		Link:  text[name:length],

		Mounted: b[1] == 1,
	}
	err = e.check()
	if b[1] > 1 {
		err = malformed(TypeListed, "unknown flags %#x of an entry", b[1])
	}
	if err != nil {
		return Listed{}, 0, err
	}
	return e, length, nil
}

// check checks everything that does not depend on other entries.
func (e *Listed) check() error {
	switch {
	case !e.Kind.Known(), e.Kind == EntryHardLink:
		return malformed(TypeListed, "a listed %s", e.Kind)
	case e.Mounted && e.Kind != EntryDirectory:
		return malformed(TypeListed, "a %s that is a mount point", e.Kind)
	case e.Mode > MaxMode:
		return malformed(TypeListed, "mode %#o, limit %#o", e.Mode, MaxMode)
	case e.MTime.Nsec >= 1e9:
		return malformed(TypeListed, "%d nanoseconds in a second", e.MTime.Nsec)
	case e.Size > maxListedSize || e.Size != 0 && e.Kind != EntryFile:
		return malformed(TypeListed, "a %s of %d bytes", e.Kind, e.Size)
	case e.Depth > maxLevel:
		return malformed(TypeListed, "an entry at depth %d, limit %d", e.Depth, maxLevel)
	case e.Depth == 0 && e.Name != "", e.Depth > 0 && !validName([]byte(e.Name)):
		return malformed(TypeListed, "a name of %d bytes at depth %d", len(e.Name), e.Depth)
	case (e.Kind == EntrySymlink) != (e.Link != ""), len(e.Link) > MaxLink, strings.IndexByte(e.Link, 0) >= 0:
		return malformed(TypeListed, "a %s with a link of %d bytes that it cannot have", e.Kind, len(e.Link))
	}
	return nil
}

// maxListedSize is the largest size of a file, which may be larger than one that can be copied.
const maxListedSize = 1<<63 - 1

// ListEnd is the content of a LIST END.
type ListEnd struct {
	Count uint32    // of the entries
	Code  AbortCode // 0: the list is complete; otherwise one of the constants: there are entries that it does not have
	Text  string    // the first reason for that, at most MaxAbortText bytes as received, any bytes; empty with Code 0
}

// AppendListEnd appends a LIST END. It truncates the text to MaxAbortText bytes and replaces invalid UTF-8.
func AppendListEnd(dst []byte, e ListEnd) []byte { return appendListEnd(dst, e, MaxAbortText) }

func appendListEnd(dst []byte, e ListEnd, limit int) []byte {
	code, text := byte(0), ""
	if e.Code != 0 {
		code, text = byte(e.Code.known()), truncateText(e.Text, limit)
	}
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeListEnd), e.Count)
	dst = binary.BigEndian.AppendUint16(append(dst, code, 0), uint16(len(text)))
	return append(dst, text...)
}

// DecodeListEnd decodes a LIST END. It fails with ErrMalformed.
func DecodeListEnd(msg []byte) (ListEnd, error) {
	if err := checkType(msg, TypeListEnd, listEndSize); err != nil {
		return ListEnd{}, err
	}
	err := firstError(
		checkTail(msg, TypeListEnd, listEndSize, uint64(binary.BigEndian.Uint16(msg[10:]))),
		checkPadding(TypeListEnd, msg[9:10]),
	)
	if err != nil {
		return ListEnd{}, err
	}
	e := ListEnd{Count: binary.BigEndian.Uint32(msg[4:]), Text: string(msg[listEndSize:])}
	if msg[8] != 0 {
		e.Code = AbortCode(msg[8]).known()
	}
	if len(e.Text) > MaxAbortText || e.Code == 0 && e.Text != "" {
		return ListEnd{}, malformed(TypeListEnd, "a text of %d bytes with result %d", len(e.Text), e.Code)
	}
	return e, nil
}
