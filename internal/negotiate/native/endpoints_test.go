package native

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// Decoding never panics, what was accepted is within the limits, and encoding it returns the same bytes.
func FuzzDecodeWorkers(f *testing.F) {
	f.Add(workersOf(TokenSize, 1, 300), true)
	f.Add(workersOf(MaxRemoteKey, MaxWorkerAddress), false)
	f.Add(workersOf(1, 1)[:5], false)
	f.Fuzz(func(t *testing.T, descriptor []byte, messages bool) {
		path := wire.PathRMA
		if messages {
			path = wire.PathMessages
		}
		w, err := DecodeWorkers(descriptor, path, 4)
		if err != nil {
			return
		}
		wiretest.WantBytes(t, AppendWorkers(nil, w), descriptor)
		if n := len(w.Addresses); n < 1 || n > 4 || len(w.Key) > MaxRemoteKey {
			t.Errorf("%d addresses, a key of %d bytes", n, len(w.Key))
		}
		for _, address := range w.Addresses {
			if len(address) < 1 || len(address) > MaxWorkerAddress {
				t.Errorf("an address of %d bytes", len(address))
			}
		}
	})
}
