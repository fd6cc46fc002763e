package service

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// Sizes of messages and of their parts, in bytes.
const (
	itemSize         = 4  // without the text
	acceptedSize     = 20 // without the path
	placeRequestSize = 12 // without share and path
	listedSize       = 36 // of an entry, without name and link
)

// The functions encode messages that a session sends only in some states.

func encodeListed(entries []Listed) []byte {
	return wire.EncodeList(nil, wire.TypeListed, entries, (*Listed).fields)
}

func encodeListEnd(e ListEnd) []byte { return appendListEnd(nil, e, wire.MaxAbortText) }

func encodeRefused(r Refusal) []byte { return AppendRefused(nil, r, refusedSize+wire.MaxAbortText) }

func encodeAccepted(a Accepted) []byte {
	return wire.Encode(nil, wire.TypeAccepted, &a, (*Accepted).fields)
}

func encodeMakeDir(m MakeDirRequest) []byte {
	return wire.Encode(nil, wire.TypeMakeDir, &m, (*MakeDirRequest).fields)
}

func encodeMeasure(m MeasureRequest) []byte {
	return wire.Encode(nil, wire.TypeMeasure, &m, (*MeasureRequest).fields)
}

func encodeItems(items []Item) []byte {
	return wire.EncodeList(nil, wire.TypeItems, items, (*Item).fields)
}

func encodeRemove(r RemoveRequest) []byte {
	c := codecOfRemove(nil, r)
	for i := range r.Paths {
		c = removePathFields(&r.Paths[i], c)
	}
	return c.Bytes()
}
