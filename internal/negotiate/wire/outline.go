package wire

import "encoding/binary"

// Outline is what a log shows of a message besides its type and size.
type Outline struct {
	Entry    uint32 // number of the entry that the message is about, or the first one
	HasEntry bool
	Items    uint32 // length of its list, as the message declares it; 0: it has none
}

// OutlineOf returns the outline of any bytes. It does not check the message, and does not allocate.
func OutlineOf(msg []byte) Outline {
	var o Outline
	layout := outlineOf(TypeOf(msg))
	if at := layout.items; at > 0 && len(msg) >= at+4 {
		o.Items = binary.BigEndian.Uint32(msg[at:])
	}
	if at := layout.entry; at > 0 && len(msg) >= at+4 {
		o.Entry, o.HasEntry = binary.BigEndian.Uint32(msg[at:]), true
	}
	return o
}

func outlineOf(t Type) outlineLayout {
	if t < 0 || int(t) >= len(outlines) {
		return outlineLayout{}
	}
	return outlines[t]
}

// outlineLayout is where a message has what its outline shows; 0: it does not have that.
type outlineLayout struct{ items, entry int }

var outlines = [...]outlineLayout{
	TypeEntries:  {items: 4}, // their numbers follow from their order
	TypeAnswers:  {items: 4, entry: ListSize},
	TypeMetadata: {entry: 4},
	TypeChunks:   {items: 4, entry: ListSize + 4},
	TypePack:     {items: 8, entry: 16},
	TypeAcks:     {items: 4},
	TypeEnd:      {entry: 4},
	TypeSum:      {entry: 4},
	TypeFailure:  {entry: 4},
	TypeResults:  {items: 4, entry: ListSize},
	TypeItems:    {items: 4},
	TypeListed:   {items: 4},
	TypeRemove:   {items: 4},
	TypeRemoved:  {items: 4},
}
