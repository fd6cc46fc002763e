package native

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A FINISHED that contradicts the RESULTS before it, or the plan, breaks the protocol, although everything has been
// committed by the word of the receiver.
func TestFinishedThatContradictsTheResults(t *testing.T) {
	const durabilityAt, committedAt, unchangedAt, failedAt = 4, 11, 15, 19 // the last bytes of the fields
	for name, alter := range map[string]func(message []byte){
		"durability": func(message []byte) { message[durabilityAt] = byte(wire.DurabilityFile) },
		"committed":  func(message []byte) { message[committedAt]++ },
		"unchanged":  func(message []byte) { message[unchangedAt]++ },
		"failed":     func(message []byte) { message[failedAt]++ },
		"padding":    func(message []byte) { message[durabilityAt+1] = 1 },
	} {
		for source, path := range map[string]string{"a file": "/src/large", "a tree": "/src"} {
			t.Run(name+" of "+source, func(t *testing.T) {
				from := disktest.NewMemory("/", "/src")
				from.Put("/src/large", roletest.Repeated("large", 3*4096))
				m := newMeeting(t, from, newTarget())
				m.sender.search.Path = path
				m.receiver.config.Durability = wire.DurabilityFull
				m.alter = func(message []byte) {
					if _, _, _, err := protocol.DecodeFinished(message); err == nil {
						alter(message)
					}
				}
				m.run()
				violation, is := errors.AsType[*wire.Error](m.sender.err)
				if !is || violation.Message != wire.TypeFinished || !errors.Is(violation, wire.ErrMalformed) {
					t.Errorf("the sender ended with %v", m.sender.err)
				}
			})
		}
	}
}
