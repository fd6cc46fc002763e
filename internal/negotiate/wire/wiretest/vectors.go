package wiretest

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// VectorCase is what all vectors of a protocol have, with the functions for their messages.
type VectorCase struct {
	Name      string
	Hex       Octets
	Malformed bool
	EncodesTo Octets // where it differs from hex

	Message func(testing.TB) any // unless it is malformed
	Decode  func([]byte) (any, error)
	Encode  func(any) []byte
}

// CheckVectors tests each vector. Each type of message that is wanted must have a well-formed one.
func CheckVectors(t *testing.T, vectors []VectorCase, wanted func(wire.Type) bool) {
	t.Helper()
	types := map[wire.Type]bool{}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			v.check(t)
			types[wire.TypeOf(v.Hex)] = types[wire.TypeOf(v.Hex)] || !v.Malformed
		})
	}
	for message := range wire.Type(0x1000) {
		if message.Known() && wanted(message) && !types[message] {
			t.Errorf("no vector of a well-formed %s", message)
		}
	}
}

func (v VectorCase) check(t *testing.T) {
	t.Helper()
	got, err := v.Decode(v.Hex)
	if v.Malformed {
		WantMalformed(t, got, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := v.Message(t); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	want := v.Hex
	if v.EncodesTo != nil {
		want = v.EncodesTo
	}
	WantBytes(t, v.Encode(got), want)
}

// CheckLengths expects every missing or additional byte to make a message malformed.
func (v VectorCase) CheckLengths(t *testing.T) {
	t.Helper()
	if v.Malformed {
		return
	}
	for length := range len(v.Hex) {
		got, err := v.Decode(v.Hex[:length])
		WantMalformed(t, got, err)
	}
	got, err := v.Decode(append(bytes.Clone(v.Hex), 0))
	WantMalformed(t, got, err)
}

// CheckBits expects every changed bit to make another message or a malformed one, except in the bytes that may mean the
// same.
func (v VectorCase) CheckBits(t *testing.T, mayMeanTheSame func(msg []byte, at int) bool) {
	t.Helper()
	if v.Malformed || v.EncodesTo != nil {
		return
	}
	original, err := v.Decode(v.Hex)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(v.Hex) {
		changed := bytes.Clone(v.Hex)
		changed[bit/8] ^= 1 << (bit % 8)
		got, err := v.Decode(changed)
		if err == nil && !mayMeanTheSame(v.Hex, bit/8) && reflect.DeepEqual(got, original) {
			t.Errorf("%s: bit %d makes no difference", v.Name, bit)
		}
	}
}
