package negotiate

import (
	"encoding/binary"
	"fmt"
)

const answerSize = 16

// AnswerKind is what the receiver wants to be done about an entry.
type AnswerKind uint8

// The answers.
const (
	AnswerNeed AnswerKind = iota + 1 // send the file
	AnswerHave                       // the receiver has it already, the entry is decided
	AnswerSum                        // send the digest of the file; the receiver answers again
)

// String returns the answer's name in docs/PROTOCOL.md.
func (k AnswerKind) String() string {
	switch k {
	case AnswerNeed:
		return "need"
	case AnswerHave:
		return "have"
	case AnswerSum:
		return "sum"
	}
	return fmt.Sprintf("answer %d", uint8(k))
}

// Answer is the receiver's answer to the announcement of an entry.
type Answer struct {
	Entry  uint32
	Kind   AnswerKind
	Offset uint64 // with AnswerNeed: number of bytes at the start of the file to claim, usually 0
}

// MaxAnswers returns the number of answers in a message of maxMessage bytes.
func MaxAnswers(maxMessage int) int { return max(0, maxMessage-listSize) / answerSize }

// AppendAnswers appends an ANSWERS.
func AppendAnswers(dst []byte, answers []Answer) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeAnswers), uint32(len(answers)))
	for _, a := range answers {
		dst = binary.BigEndian.AppendUint32(dst, a.Entry)
		dst = append(dst, byte(a.Kind), 0, 0, 0)
		dst = binary.BigEndian.AppendUint64(dst, a.Offset)
	}
	return dst
}

// DecodeAnswers appends the answers of an ANSWERS to dst. It fails with ErrMalformed and returns dst unchanged.
func DecodeAnswers(dst []Answer, msg []byte) ([]Answer, error) {
	if err := checkList(msg, TypeAnswers, answerSize); err != nil {
		return dst, err
	}
	answers := dst
	for at := listSize; at < len(msg); at += answerSize {
		b := msg[at : at+answerSize]
		a := Answer{
			Entry:  binary.BigEndian.Uint32(b),
			Kind:   AnswerKind(b[4]),
			Offset: binary.BigEndian.Uint64(b[8:]),
		}
		if err := firstError(a.check(), checkPadding(TypeAnswers, b[5:8])); err != nil {
			return dst, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

func (a Answer) check() error {
	switch {
	case a.Kind < AnswerNeed || a.Kind > AnswerSum:
		return malformed(TypeAnswers, "unknown %s", a.Kind)
	case a.Kind != AnswerNeed && a.Offset != 0:
		return malformed(TypeAnswers, "an offset with %s", a.Kind)
	}
	return nil
}
