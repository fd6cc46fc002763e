package pump

import (
	"fmt"
	"testing"
)

// BenchmarkChunks sends a file in chunks between lanes in this process, so that what is left beside the copies is the
// cost of a chunk in the lanes.
func BenchmarkChunks(b *testing.B) {
	const chunks = 2000
	for _, chunk := range []int64{64, 4 << 10, 64 << 10} {
		for _, lanes := range []int{1, 2} {
			b.Run(fmt.Sprintf("chunk=%d/lanes=%d", chunk, lanes), func(b *testing.B) {
				content, target := make([]byte, chunk*chunks), make([]byte, chunk*chunks)
				b.SetBytes(int64(len(content)))
				b.ReportAllocs()
				for range b.N {
					b.StopTimer()
					p := newPair(0)
					p.source.bytes, p.target.bytes = content, target
					p.chunk, p.slots, p.lanes, p.hostSends = chunk, 16, [2]int{lanes, lanes}, true
					p.build()
					b.StartTimer()
					sent, received := p.run(b.Context())
					must(b, sent)
					must(b, received)
				}
				b.ReportMetric(float64(b.N)*chunks/b.Elapsed().Seconds(), "chunks/s")
			})
		}
	}
}
