package service

import (
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// MaxShare is how many bytes the name of a share has at most.
const MaxShare = 64

// ValidShare reports whether name can name a share: 1 to MaxShare lower case letters, digits, '.', '_' and '-', the
// first one neither '.' nor '-'.
func ValidShare(name string) bool {
	if name == "" || len(name) > MaxShare || name[0] == '.' || name[0] == '-' {
		return false
	}
	for _, octet := range []byte(name) {
		lower, digit := 'a' <= octet && octet <= 'z', '0' <= octet && octet <= '9'
		if !lower && !digit && octet != '.' && octet != '_' && octet != '-' {
			return false
		}
	}
	return true
}

// ValidSharePath reports whether path can name something in a share: empty for the share's root, otherwise names of 1
// to MaxName bytes, joined by '/', that are neither "." nor ".." and have no zero byte, at most MaxPath bytes together.
func ValidSharePath(path string) bool { return path == "" || wire.ValidPath([]byte(path)) }

// Place is where something is on the daemon's side.
type Place struct {
	Share string // as ValidShare requires
	Path  string // below the share, as ValidSharePath requires; may have any other bytes
}

func (p Place) check(t wire.Type) error {
	if !ValidShare(p.Share) {
		return wire.Malformed(t, "a name of %d bytes that no share can have", len(p.Share))
	}
	return checkSharePath(t, p.Path)
}

func checkSharePath(t wire.Type, path string) error {
	if !ValidSharePath(path) {
		return wire.Malformed(t, "a path of %d bytes that nothing in a share can have", len(path))
	}
	return nil
}

const listEndSize = 12 // without the text

// ListFlags are options of a LIST.
type ListFlags uint32

// The flags. ListRecursive and ListItself exclude each other.
const (
	ListRecursive ListFlags = 1 << 0 // directories below the listed one, too
	ListItself    ListFlags = 1 << 1 // only the entry itself, even if it is a directory
	ListIdentify  ListFlags = 1 << 2 // Listed.File is set
	ListKept      ListFlags = 1 << 3 // Place is below the directory that the last copy has kept
	ListAll       ListFlags = 1 << 4 // FIFOs, sockets and devices, too, and Listed.Mounted is set

	knownListFlags = ListAll<<1 - 1
)

// Has reports whether all of the wanted flags are set.
func (f ListFlags) Has(wanted ListFlags) bool { return f&wanted == wanted }

// depth returns the depth of the deepest entry.
func (f ListFlags) depth() int {
	switch {
	case f.Has(ListRecursive):
		return wire.MaxLevel
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
	return wire.Encode(dst, wire.TypeList, &l, (*ListRequest).fields)
}

func (l *ListRequest) fields(c wire.Codec) wire.Codec {
	var none byte
	wire.Integer(&c, &l.Flags)
	l.Place.fields(&c, &none, 0)
	c.Verify(l.check)
	return c
}

// fields passes a place and, between its lengths, flags, which must all be in known.
func (p *Place) fields(c *wire.Codec, flags *byte, known byte) {
	share := wire.Length[uint8](c, len(p.Share))
	wire.Integer(c, flags)
	path := wire.Length[uint16](c, len(p.Path))
	c.Text(&p.Share, share)
	c.Text(&p.Path, path)
	if unknown := *flags &^ known; unknown != 0 {
		c.Fail("unknown flags %#x", unknown)
	}
}

func (l ListRequest) check() error {
	switch {
	case l.Flags&^knownListFlags != 0:
		return wire.Malformed(wire.TypeList, "unknown flags %#x", uint32(l.Flags&^knownListFlags))
	case l.Flags.Has(ListRecursive | ListItself):
		return wire.Malformed(wire.TypeList, "flags %#x exclude each other", uint32(l.Flags))
	case l == ListRequest{}:
		return nil
	}
	return l.Place.check(wire.TypeList)
}

// Listed is an entry of a LISTED. The first one of a list, at depth 0, is what was asked for; in a list of the shares,
// it is a directory that has the shares as its entries. An entry's parent is the last one of the previous depth that
// was listed before it.
type Listed struct {
	Kind  wire.EntryKind // but EntryHardLink; EntrySpecial with ListAll only
	Depth int            // at most 2048
	// Mode has permission bits, at most MaxMode. For a share they are the rights of the key: 0o400 read, 0o200 write.
	Mode  uint32
	MTime wire.Timestamp
	// File is, with ListIdentify, a number that all names of one file have in the lists of a connection, and that
	// another file has with the probability of 2^-32. Otherwise it is 0.
	File uint32
	Size uint64 // bytes of a file; otherwise 0
	Name string // the last component of the path; empty at depth 0. May have any bytes but '/' and zero
	Link string // text of a symlink, 1 to MaxLink bytes; otherwise empty

	// Mounted is, with ListAll, whether a file system is mounted on a directory. At depth 0 it needs ListItself, too.
	Mounted bool
}

func (e *Listed) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &e.Kind)
	c.Bit(&e.Mounted, "mounted")
	c.Depth(&e.Depth)
	wire.Integer(&c, &e.Mode)
	wire.Integer(&c, &e.MTime.Sec)
	wire.Integer(&c, &e.MTime.Nsec)
	wire.Integer(&c, &e.File)
	wire.Integer(&c, &e.Size)
	name := wire.Length[uint16](&c, len(e.Name))
	link := wire.Length[uint16](&c, len(e.Link))
	c.Text(&e.Name, name)
	c.Text(&e.Link, link)
	c.Verify(e.check)
	return c
}

// check checks everything that does not depend on other entries.
func (e *Listed) check() error {
	switch {
	case !e.Kind.Known(), e.Kind == wire.EntryHardLink:
		return wire.Malformed(wire.TypeListed, "a listed %s", e.Kind)
	case e.Mounted && e.Kind != wire.EntryDirectory:
		return wire.Malformed(wire.TypeListed, "a %s that is a mount point", e.Kind)
	case e.Mode > wire.MaxMode:
		return wire.Malformed(wire.TypeListed, "mode %#o, limit %#o", e.Mode, wire.MaxMode)
	case e.MTime.Nsec >= 1e9:
		return wire.Malformed(wire.TypeListed, "%d nanoseconds in a second", e.MTime.Nsec)
	case e.Size > maxListedSize || e.Size != 0 && e.Kind != wire.EntryFile:
		return wire.Malformed(wire.TypeListed, "a %s of %d bytes", e.Kind, e.Size)
	case e.Depth > wire.MaxLevel:
		return wire.Malformed(wire.TypeListed, "an entry at depth %d, limit %d", e.Depth, wire.MaxLevel)
	case e.Depth == 0 && e.Name != "", e.Depth > 0 && !wire.ValidName([]byte(e.Name)):
		return wire.Malformed(wire.TypeListed, "a name of %d bytes at depth %d", len(e.Name), e.Depth)
	case (e.Kind == wire.EntrySymlink) != (e.Link != ""), len(e.Link) > wire.MaxLink, strings.IndexByte(e.Link, 0) >= 0:
		return wire.Malformed(wire.TypeListed, "a %s with a link of %d bytes that it cannot have", e.Kind, len(e.Link))
	}
	return nil
}

// maxListedSize is the largest size of a file, which may be larger than one that can be copied.
const maxListedSize = 1<<63 - 1

// ListEnd is the content of a LIST END.
type ListEnd struct {
	Count uint32         // of the entries
	Code  wire.AbortCode // 0: the list is complete; otherwise one of the constants: entries are missing
	Text  string         // the first reason, at most MaxAbortText bytes as received, any bytes; empty with Code 0
}

// appendListEnd appends a LIST END. It truncates the text to limit bytes and replaces invalid UTF-8.
func appendListEnd(dst []byte, e ListEnd, limit int) []byte {
	e.Code, e.Text = optionalReason(e.Code, e.Text, limit)
	return wire.Encode(dst, wire.TypeListEnd, &e, (*ListEnd).fields)
}

func (e *ListEnd) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &e.Count)
	optionalReasonField(&c, &e.Code, &e.Text, wire.MaxAbortText)
	return c
}

// optionalReasonField is reason for one that may be missing: the code is 0 and the text empty.
func optionalReasonField(c *wire.Codec, code *wire.AbortCode, text *string, limit int) {
	c.Reason(code, text, limit)
	if *code == 0 && *text != "" {
		c.Fail("a text of %d bytes without a code", len(*text))
	}
	*code, _ = optionalReason(*code, "", 0)
}

// optionalReason returns a reason as it is sent: without a code there is no text.
func optionalReason(code wire.AbortCode, text string, limit int) (wire.AbortCode, string) {
	if code == 0 {
		return 0, ""
	}
	return code.Known(), wire.TruncateText(text, limit)
}
