package native

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The DPU knows the size of the host's file before it proposes chunk size and depth.
func TestDPUHearsTheSizeBeforeItProposes(t *testing.T) {
	for inHost, want := range map[bool]uint64{true: 12345, false: 0} {
		own := receiverHello()
		s := reference.New(wire.DPU, reference.Local{Native: &Offer{Own: own}}, nativeLimits)
		s.Start()
		step, err := s.Receive(reference.Direction{FileInHost: inHost, Size: 12345, Offer: [3]byte{0xDC, 2,
			2}}.Encode())
		if err != nil || step.Size != want {
			t.Errorf("file in host %v: a size of %d, %v", inHost, step.Size, err)
		}
	}
}

func TestProposalIsWhatThePeerHears(t *testing.T) {
	host, dpu := newNative(t, wire.Host, senderHello()), newNative(t, wire.DPU, receiverHello())
	for _, refused := range [][2]uint32{
		{wire.MinChunk + 1, 1}, {wire.MinChunk / 2, 1}, {2 * wire.MaxChunk, 1}, {wire.MinChunk, 0}, {wire.MinChunk,
			wire.MaxDepth + 1},
	} {
		if err := dpu.Propose(refused[0], refused[1]); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%d slots of %d bytes: %v", refused[1], refused[0], err)
		}
	}
	if err := dpu.Propose(wire.MinChunk, 1); err != nil {
		t.Fatal(err)
	}
	dpu.Start()
	step, err := dpu.Receive(host.Start())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Receive(step.Reply); err != nil {
		t.Fatal(err)
	}
	for side, n := range map[string]*Session{"host": host, "DPU": dpu} {
		if plan := n.plan; plan.Depth != 1 || plan.Chunk != wire.MinChunk {
			t.Errorf("%s: %d slots of %d bytes", side, plan.Depth, plan.Chunk)
		}
	}
}
