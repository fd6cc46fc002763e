package negotiate

import (
	"bytes"
	"testing"
)

// The outline has the entry and the length of the list that the message was made of.
func TestOutline(t *testing.T) {
	for name, c := range map[string]struct {
		message []byte
		want    Outline
	}{
		"hello":    {AppendHello(nil, Hello{}), Outline{}},
		"entries":  {AppendEntries(nil, []Entry{{Name: []byte("a")}, {Name: []byte("b")}}), Outline{Items: 2}},
		"answers":  {AppendAnswers(nil, []Answer{{Entry: 7}, {Entry: 8}}), Outline{7, true, 2}},
		"metadata": {AppendMetadata(nil, 9, Metadata{Part: []byte("x")}), Outline{9, true, 0}},
		"chunks":   {AppendChunks(nil, []Record{{Slot: 1, Entry: 5}}), Outline{5, true, 1}},
		"pack":     {AppendPack(nil, Pack{Files: []PackedFile{{Entry: 6}, {Entry: 7}}}, 0), Outline{6, true, 2}},
		"acks":     {AppendAcks(nil, []Ack{{Slot: 4}}), Outline{Items: 1}},
		"end":      {AppendEnd(nil, 0, 100, nil), Outline{0, true, 0}},
		"sum":      {AppendSum(nil, 11, nil), Outline{11, true, 0}},
		"failure":  {AppendFailure(nil, Failure{Entry: 12}), Outline{12, true, 0}},
		"results":  {AppendResults(nil, []uint32{13, 14, 15}), Outline{13, true, 3}},
		"items":    {AppendItems(nil, []Item{{}, {}}), Outline{Items: 2}},
		"listed":   {encodeListed([]Listed{{}}), Outline{Items: 1}},
		"remove":   {AppendRemove(nil, RemoveRequest{Paths: []string{"a", "b"}}), Outline{Items: 2}},
		"removed":  {AppendRemoved(nil, []Removal{{}}, 1000), Outline{Items: 1}},
		"cut":      {AppendEnd(nil, 1, 100, nil)[:6], Outline{}},
		"empty":    {nil, Outline{}},
		"unknown":  {bytes.Repeat([]byte{0xff}, 16), Outline{}},
	} {
		if got := OutlineOf(c.message); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
