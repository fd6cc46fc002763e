package negotiate

import (
	"errors"
	"testing"
)

// The DPU knows the size of the host's file before it proposes chunk size and depth.
func TestDPUHearsTheSizeBeforeItProposes(t *testing.T) {
	for inHost, want := range map[bool]uint64{true: 12345, false: 0} {
		own := receiverHello()
		s := NewSession(DPU, Local{Native: &Offer{Own: own}}, nativeLimits)
		s.Start()
		step, err := s.Receive(Direction{FileInHost: inHost, Size: 12345, Offer: [3]byte{0xDC, 2, 2}}.Encode())
		if err != nil || step.Size != want {
			t.Errorf("file in host %v: a size of %d, %v", inHost, step.Size, err)
		}
	}
}

func TestProposalIsWhatThePeerHears(t *testing.T) {
	host, dpu := newNative(t, Host, senderHello()), newNative(t, DPU, receiverHello())
	for _, refused := range [][2]uint32{
		{MinChunk + 1, 1}, {MinChunk / 2, 1}, {2 * MaxChunk, 1}, {MinChunk, 0}, {MinChunk, MaxDepth + 1},
	} {
		if err := dpu.Propose(refused[0], refused[1]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d slots of %d bytes: %v", refused[1], refused[0], err)
		}
	}
	if err := dpu.Propose(MinChunk, 1); err != nil {
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
	for side, n := range map[string]*NativeSession{"host": host, "DPU": dpu} {
		if plan := n.plan; plan.Depth != 1 || plan.Chunk != MinChunk {
			t.Errorf("%s: %d slots of %d bytes", side, plan.Depth, plan.Chunk)
		}
	}
}
