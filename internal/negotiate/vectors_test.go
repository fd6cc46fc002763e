package negotiate

import (
	"bytes"
	"reflect"
	"testing"
)

// vectorCase is what all vectors of a protocol have, with the functions for their messages.
type vectorCase struct {
	name      string
	hex       octets
	malformed bool
	encodesTo octets // where it differs from hex

	message func(testing.TB) any // unless it is malformed
	decode  func([]byte) (any, error)
	encode  func(any) []byte
}

// checkVectors tests each vector. Each type of message that is wanted must have a well-formed one.
func checkVectors(t *testing.T, vectors []vectorCase, wanted func(Type) bool) {
	t.Helper()
	types := map[Type]bool{}
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			v.check(t)
			types[TypeOf(v.hex)] = types[TypeOf(v.hex)] || !v.malformed
		})
	}
	for message := range Type(0x1000) {
		if message.known() && wanted(message) && !types[message] {
			t.Errorf("no vector of a well-formed %s", message)
		}
	}
}

func (v vectorCase) check(t *testing.T) {
	t.Helper()
	got, err := v.decode(v.hex)
	if v.malformed {
		wantMalformed(t, got, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := v.message(t); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	want := v.hex
	if v.encodesTo != nil {
		want = v.encodesTo
	}
	wantBytes(t, v.encode(got), want)
}

// checkLengths expects every missing or additional byte to make a message malformed.
func (v vectorCase) checkLengths(t *testing.T) {
	t.Helper()
	if v.malformed {
		return
	}
	for length := range len(v.hex) {
		got, err := v.decode(v.hex[:length])
		wantMalformed(t, got, err)
	}
	got, err := v.decode(append(bytes.Clone(v.hex), 0))
	wantMalformed(t, got, err)
}

// checkBits expects every changed bit to make another message or a malformed one, except in the bytes that may mean the
// same.
func (v vectorCase) checkBits(t *testing.T, mayMeanTheSame func(msg []byte, at int) bool) {
	t.Helper()
	if v.malformed || v.encodesTo != nil {
		return
	}
	original, err := v.decode(v.hex)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(v.hex) {
		changed := bytes.Clone(v.hex)
		changed[bit/8] ^= 1 << (bit % 8)
		got, err := v.decode(changed)
		if err == nil && !mayMeanTheSame(v.hex, bit/8) && reflect.DeepEqual(got, original) {
			t.Errorf("%s: bit %d makes no difference", v.name, bit)
		}
	}
}
