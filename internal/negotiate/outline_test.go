package negotiate_test

import (
	"bytes"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// The outline has the entry and the length of the list that the message was made of.
func TestOutline(t *testing.T) {
	for name, c := range map[string]struct {
		message []byte
		want    wire.Outline
	}{
		"hello":   {native.AppendHello(nil, native.Hello{}), wire.Outline{}},
		"entries": {wiretest.AppendType(nil, wire.TypeEntries, 0, 0, 0, 2, 0), wire.Outline{Items: 2}},
		"answers": {native.AppendAnswers(nil, []native.Answer{{Entry: 7}, {Entry: 8}}), wire.Outline{Entry: 7,
			HasEntry: true, Items: 2}},
		"metadata": {native.AppendMetadata(nil, 9, native.Metadata{Part: []byte("x")}), wire.Outline{Entry: 9,
			HasEntry: true}},
		"chunks": {native.AppendChunks(nil, []native.Record{{Slot: 1, Entry: 5}}), wire.Outline{Entry: 5,
			HasEntry: true, Items: 1}},
		"pack": {native.AppendPack(nil, native.Pack{Files: []native.PackedFile{{Entry: 6}, {Entry: 7}}}, 0),
			wire.Outline{Entry: 6, HasEntry: true, Items: 2}},
		"acks":    {native.AppendAcks(nil, []native.Ack{{Slot: 4}}), wire.Outline{Items: 1}},
		"end":     {native.AppendEnd(nil, 0, 100, nil), wire.Outline{Entry: 0, HasEntry: true}},
		"sum":     {native.AppendSum(nil, 11, nil), wire.Outline{Entry: 11, HasEntry: true}},
		"failure": {native.AppendFailure(nil, native.Failure{Entry: 12}), wire.Outline{Entry: 12, HasEntry: true}},
		"results": {native.AppendResults(nil, []uint32{13, 14, 15}), wire.Outline{Entry: 13, HasEntry: true,
			Items: 3}},
		"items":   {wiretest.AppendType(nil, wire.TypeItems, 0, 0, 0, 2, 0), wire.Outline{Items: 2}},
		"listed":  {wiretest.AppendType(nil, wire.TypeListed, 0, 0, 0, 1, 0), wire.Outline{Items: 1}},
		"remove":  {wiretest.AppendType(nil, wire.TypeRemove, 0, 0, 0, 2, 0), wire.Outline{Items: 2}},
		"removed": {service.AppendRemoved(nil, []service.Removal{{}}, 1000), wire.Outline{Items: 1}},
		"cut":     {native.AppendEnd(nil, 1, 100, nil)[:6], wire.Outline{}},
		"empty":   {nil, wire.Outline{}},
		"unknown": {bytes.Repeat([]byte{0xff}, 16), wire.Outline{}},
	} {
		if got := wire.OutlineOf(c.message); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
