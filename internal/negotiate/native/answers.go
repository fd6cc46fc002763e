package native

import (
	"fmt"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const answerSize = 16

// AnswerKind is what the receiver wants to be done about an entry.
type AnswerKind uint8

// The answers.
const (
	AnswerNeed   AnswerKind = 1 // send the file; in a dry run the entry is decided
	AnswerHave   AnswerKind = 2 // the receiver has it already, the entry is decided
	AnswerSum    AnswerKind = 3 // send the digest of the file; the receiver answers again
	AnswerExists AnswerKind = 4 // the receiver leaves what exists in its place, the entry is decided
)

var answerNames = []string{AnswerNeed: "need", AnswerHave: "have", AnswerSum: "sum", AnswerExists: "exists"}

// String returns the answer's name in docs/internals/protocol/native.md.
func (k AnswerKind) String() string { return wire.NameOf(answerNames, k, "answer") }

// Change is why an entry would be copied.
type Change uint8

// The changes: the first one that applies.
const (
	ChangeNone    Change = 0 // nothing differs, or the transfer replaces what does
	ChangeNew     Change = 1 // there is nothing of its name
	ChangeType    Change = 2 // what has its name is of another kind
	ChangeSize    Change = 3 // the file has another size
	ChangeContent Change = 4 // the digests of the files differ, the texts of the symlinks, or a hard link's file
	ChangeTime    Change = 5 // the modification times differ
	ChangeMode    Change = 6 // the permissions differ
	ChangeOwner   Change = 7 // the owners differ
	ChangeXattr   Change = 8 // the extended attributes of the files differ
)

// changeNames is the only table of the names.
var changeNames = [...]string{"", "new", "type", "size", "content", "time", "mode", "owner", "xattr"}

// String returns the change's name in docs/internals/protocol/native.md, in plans and events; empty for ChangeNone.
func (c Change) String() string {
	if int(c) >= len(changeNames) {
		return fmt.Sprintf("change %d", uint8(c))
	}
	return changeNames[c]
}

// Answer is the receiver's answer to the announcement of an entry.
type Answer struct {
	Entry  uint32
	Kind   AnswerKind
	Change Change // with AnswerNeed in a dry run: why; with AnswerHave: the first attribute that is set
	Offset uint64 // with AnswerNeed: number of bytes at the start of the file to claim, usually 0

	Discarded wire.Discarded // with AnswerNeed and Offset 0
}

// MaxAnswers returns the number of answers in a message of maxMessage bytes.
func MaxAnswers(maxMessage int) int { return max(0, maxMessage-wire.ListSize) / answerSize }

// AppendAnswers appends an ANSWERS.
func AppendAnswers(dst []byte, answers []Answer) []byte {
	return wire.EncodeList(dst, wire.TypeAnswers, answers, (*Answer).fields)
}

// DecodeAnswers appends the answers of an ANSWERS to dst. It fails with ErrMalformed and returns dst unchanged.
func DecodeAnswers(dst []Answer, msg []byte) ([]Answer, error) {
	return wire.DecodeList(dst, msg, wire.TypeAnswers, (*Answer).fields)
}

func (a *Answer) fields(c wire.Codec) wire.Codec {
	wire.Integer(&c, &a.Entry)
	wire.Integer(&c, &a.Kind)
	wire.Integer(&c, &a.Change)
	wire.Integer(&c, &a.Discarded)
	c.Zeros(1)
	wire.Integer(&c, &a.Offset)
	c.Verify(a.check)
	return c
}

func (a Answer) check() error {
	switch {
	case a.Kind < AnswerNeed || a.Kind > AnswerExists:
		return wire.Malformed(wire.TypeAnswers, "unknown %s", a.Kind)
	case int(a.Change) >= len(changeNames):
		return wire.Malformed(wire.TypeAnswers, "unknown %s", a.Change)
	case a.Kind != AnswerNeed && a.Offset != 0, a.Kind > AnswerHave && a.Change != ChangeNone,
		a.Kind == AnswerHave && a.Change != ChangeNone && a.Change <= ChangeContent:
		return wire.Malformed(wire.TypeAnswers, "an offset or a change with %s", a.Kind)
	case a.Discarded > wire.DiscardedNotResumable:
		return wire.Malformed(wire.TypeAnswers, "unknown %s", a.Discarded)
	case a.Discarded != 0 && (a.Kind != AnswerNeed || a.Offset != 0):
		return wire.Malformed(wire.TypeAnswers, "%s of %d bytes, after something was discarded", a.Kind, a.Offset)
	}
	return nil
}
