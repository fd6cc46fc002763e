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
		"entries":  {appendType(nil, TypeEntries, 0, 0, 0, 2, 0), Outline{Items: 2}},
		"answers":  {AppendAnswers(nil, []Answer{{Entry: 7}, {Entry: 8}}), Outline{Entry: 7, HasEntry: true, Items: 2}},
		"metadata": {AppendMetadata(nil, 9, Metadata{Part: []byte("x")}), Outline{Entry: 9, HasEntry: true}},
		"chunks":   {AppendChunks(nil, []Record{{Slot: 1, Entry: 5}}), Outline{Entry: 5, HasEntry: true, Items: 1}},
		"pack":     {AppendPack(nil, Pack{Files: []PackedFile{{Entry: 6}, {Entry: 7}}}, 0), Outline{Entry: 6, HasEntry: true, Items: 2}},
		"acks":     {AppendAcks(nil, []Ack{{Slot: 4}}), Outline{Items: 1}},
		"end":      {AppendEnd(nil, 0, 100, nil), Outline{Entry: 0, HasEntry: true}},
		"sum":      {AppendSum(nil, 11, nil), Outline{Entry: 11, HasEntry: true}},
		"failure":  {AppendFailure(nil, Failure{Entry: 12}), Outline{Entry: 12, HasEntry: true}},
		"results":  {AppendResults(nil, []uint32{13, 14, 15}), Outline{Entry: 13, HasEntry: true, Items: 3}},
		"items":    {appendType(nil, TypeItems, 0, 0, 0, 2, 0), Outline{Items: 2}},
		"listed":   {appendType(nil, TypeListed, 0, 0, 0, 1, 0), Outline{Items: 1}},
		"remove":   {appendType(nil, TypeRemove, 0, 0, 0, 2, 0), Outline{Items: 2}},
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
