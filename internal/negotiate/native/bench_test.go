package native

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// BenchmarkFile carries out the messages of one file with three chunks between a sender and a receiver. There are no
// bytes, no channel and no clock, so that what is left is the cost of the messages.
func BenchmarkFile(b *testing.B) {
	k := newPair(b, wire.Host, senderHello(), receiverHello())
	k.open()
	for i := range b.N {
		if i > 0 {
			k.begin()
		}
		k.announce(rootFile())
		k.answer(need(0)...)
		k.settle([]Record{data(0, 0, 0, 4096), data(0, 1, 4096, 4096)}, Ack{Slot: 1}, Ack{Slot: 0})
		k.settle([]Record{data(0, 1, 8192, 1808)}, Ack{Slot: 1})
		k.end(0, nativeSize)
		k.commit(0)
		k.finish(Counts{Committed: 1})
	}
}
