package negotiate

import "strings"

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
	return encode(dst, TypeList, &l, (*ListRequest).fields)
}

// DecodeList decodes a LIST. It fails with ErrMalformed.
func DecodeList(msg []byte) (ListRequest, error) { return decode(msg, TypeList, (*ListRequest).fields) }

func (l *ListRequest) fields(c codec) codec {
	var none byte
	integer(&c, &l.Flags)
	l.Place.fields(&c, &none, 0)
	c.verify(l.check)
	return c
}

// fields passes a place and, between its lengths, flags of which some are known.
func (p *Place) fields(c *codec, flags *byte, known byte) {
	share := length[uint8](c, len(p.Share))
	integer(c, flags)
	path := length[uint16](c, len(p.Path))
	c.text(&p.Share, share)
	c.text(&p.Path, path)
	if unknown := *flags &^ known; unknown != 0 {
		c.fail("unknown flags %#x", unknown)
	}
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

// DecodeListed appends the entries of a LISTED to dst. It checks everything that does not depend on other entries. It
// fails with ErrMalformed and returns dst unchanged.
func DecodeListed(dst []Listed, msg []byte) ([]Listed, error) {
	return decodeList(dst, msg, TypeListed, (*Listed).fields)
}

func (e *Listed) fields(c codec) codec {
	integer(&c, &e.Kind)
	c.bit(&e.Mounted, "mounted")
	c.depth(&e.Depth)
	integer(&c, &e.Mode)
	integer(&c, &e.MTime.Sec)
	integer(&c, &e.MTime.Nsec)
	integer(&c, &e.File)
	integer(&c, &e.Size)
	name := length[uint16](&c, len(e.Name))
	link := length[uint16](&c, len(e.Link))
	c.text(&e.Name, name)
	c.text(&e.Link, link)
	c.verify(e.check)
	return c
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

// appendListEnd appends a LIST END. It truncates the text to limit bytes and replaces invalid UTF-8.
func appendListEnd(dst []byte, e ListEnd, limit int) []byte {
	e.Code, e.Text = optionalReason(e.Code, e.Text, limit)
	return encode(dst, TypeListEnd, &e, (*ListEnd).fields)
}

// DecodeListEnd decodes a LIST END. It fails with ErrMalformed.
func DecodeListEnd(msg []byte) (ListEnd, error) { return decode(msg, TypeListEnd, (*ListEnd).fields) }

func (e *ListEnd) fields(c codec) codec {
	integer(&c, &e.Count)
	optionalReasonField(&c, &e.Code, &e.Text, MaxAbortText)
	return c
}

// optionalReasonField is reason for one that may be missing: the code is 0 and the text empty.
func optionalReasonField(c *codec, code *AbortCode, text *string, limit int) {
	c.reason(code, text, limit)
	if *code == 0 && *text != "" {
		c.fail("a text of %d bytes without a code", len(*text))
	}
	*code, _ = optionalReason(*code, "", 0)
}

// optionalReason returns a reason as it is sent: without a code there is no text.
func optionalReason(code AbortCode, text string, limit int) (AbortCode, string) {
	if code == 0 {
		return 0, ""
	}
	return code.known(), truncateText(text, limit)
}
