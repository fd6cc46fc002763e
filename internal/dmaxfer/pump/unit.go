package pump

import (
	"fmt"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// Unit is the content of one slot: a chunk of one file, or several whole files.
type Unit struct {
	Record native.Record // of a chunk
	Pack   native.Pack   // of whole files; without files, the unit is a chunk

	// Ref belongs to the Feed or to StorePack, for example to find the file of a chunk again.
	Ref any
}

// reset makes an empty unit for a slot. It keeps the memory of the list of files.
func (u *Unit) reset(slot int) {
	*u = Unit{
		Record: native.Record{Slot: uint16(slot)},
		Pack:   native.Pack{Slot: uint16(slot), Files: u.Pack.Files[:0]},
	}
}

// Packed reports whether the unit has whole files.
func (u *Unit) Packed() bool { return len(u.Pack.Files) > 0 }

// Chunk returns the chunk of a unit that is one.
func (u *Unit) Chunk() Chunk { return chunkOf(&u.Record) }

// SetChunk makes the unit a chunk of an entry.
func (u *Unit) SetChunk(entry uint32, c Chunk) {
	u.Record.Kind, u.Record.Entry = c.Kind, entry
	u.Record.Offset, u.Record.Length = uint64(c.Offset), uint64(c.Length)
}

// Used returns how many bytes at the start of the slot have a meaning: for a claim the bytes to be checked,
// for a hole none.
func (u *Unit) Used() int64 {
	switch {
	case u.Packed():
		last := &u.Pack.Files[len(u.Pack.Files)-1]
		return int64(last.Position) + int64(last.Length)
	case u.Record.Kind == native.HoleRecord:
		return 0
	}
	return int64(u.Record.Length)
}

// check computes the checksums, and the digests of whole files.
func (u *Unit) check(a digest.Algorithm, content []byte) {
	if !u.Packed() {
		if u.Record.Kind != native.HoleRecord {
			u.Record.Check = checkOf(u.Record.Kind, a, content)
		}
		return
	}
	for i := range u.Pack.Files {
		f := &u.Pack.Files[i]
		f.Check = digest.Check(a, ContentOf(f, content))
		sum := digest.SumOf(a, ContentOf(f, content), f.Check)
		sum.CopyTo(f.Digest[:])
	}
}

// ContentOf returns a whole file's bytes within its unit's content.
func ContentOf(f *native.PackedFile, content []byte) []byte {
	return content[f.Position : f.Position+f.Length : f.Position+f.Length]
}

// attempted counts one more attempt, and returns how many there have been.
func (u *Unit) attempted() int {
	u.Record.Attempt++
	u.Pack.Attempt++
	return int(u.Record.Attempt)
}

// trace logs at level TRACE that content has moved.
func (u *Unit) trace(log *zerolog.Logger, text string) {
	event := log.Trace()
	if event == nil {
		return
	}
	entry := u.Record.Entry
	if u.Packed() {
		entry = u.Pack.Files[0].Entry
		event.Int("items", len(u.Pack.Files))
	} else {
		event.Uint64("offset", u.Record.Offset)
	}
	event.Uint16("slot", u.Record.Slot).Uint32("entry", entry).Int64("bytes", u.Used()).Msg(text)
}

// String describes the unit in errors.
func (u *Unit) String() string {
	if u.Packed() {
		return fmt.Sprintf("%d files in %d bytes", len(u.Pack.Files), u.Used())
	}
	return fmt.Sprintf("%d bytes at %d", u.Record.Length, u.Record.Offset)
}
