//go:build cgo

package dmaxfer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The padding of a reference host's DIRECTION is whatever its memory held. If that looks like an offer, our DPU takes
// it up; the host, which does not read the answer's padding, exports its memory, and the file is copied in its protocol
// after all.
func TestOfferThatIsPadding(t *testing.T) {
	setup := newSetup(t, "")
	want := content(3*testChunk + 5)
	host, dpu := comchtest.NewPair(4080, comchtest.Faultless, comchtest.Faultless)
	defer host.Close()
	done := make(chan outcome, 1)
	go func() { done <- talk(t, setup.dpu, dpu) }()

	offer := reference.Direction{FileInHost: true, Size: uint64(len(want)), Offer: [3]byte{0xDC, 2, 2}}
	must(t, host.Send(t.Context(), offer.Encode()))
	if answer := mustReceive(t, host).(reference.Direction); answer.Offer == [3]byte{} {
		t.Fatal("what looked like an offer was not taken for one, so this shows nothing")
	}
	memory, err := setup.Host.Alloc(int64(len(want)), doca.RemoteRead)
	must(t, err)
	copy(memory.Bytes(), want)
	descriptor, err := memory.Export()
	must(t, err)
	must(t, host.Send(t.Context(), reference.Export{Address: memory.Address(), Descriptor: descriptor}.Encode()))
	if mustReceive(t, host) != (reference.Status{Success: true}) {
		t.Error("the DPU reports a failure")
	}
	must(t, memory.Close())
	must(t, host.Close())
	must(t, (<-done).errs[wire.DPU])
	jobtest.MustContain(t, setup.dpu.File, want)
}

// A DPU that has only a stream to send to such a host names the file, as it does where nothing looked like an offer.
func TestStreamForOfferThatIsPadding(t *testing.T) {
	setup := newSetup(t, "")
	setup.dpu.File = "/proc/self/status"
	host, dpu := comchtest.NewPair(4080, comchtest.Faultless, comchtest.Faultless)
	defer host.Close()
	done := make(chan outcome, 1)
	go func() { done <- talk(t, setup.dpu, dpu) }()

	must(t, host.Send(t.Context(), reference.Direction{Offer: [3]byte{0xDC, 2, 2}}.Encode()))
	if answer := mustReceive(t, host).(reference.Direction); answer.Offer == [3]byte{} {
		t.Fatal("what looked like an offer was not taken for one, so this shows nothing")
	}
	must(t, host.Send(t.Context(), reference.Export{Descriptor: []byte("descriptor")}.Encode()))
	if mustReceive(t, host) != (reference.Status{}) {
		t.Error("the DPU reports a success")
	}
	must(t, host.Close())
	err := (<-done).errs[wire.DPU]
	jobtest.MustFail(t, err, job.ErrSource)
	if !strings.Contains(err.Error(), "/proc/self/status has no known size") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func mustReceive(t *testing.T, from comch.Conn) reference.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	octets, err := from.Recv(ctx)
	must(t, err)
	message, err := reference.Decode(octets)
	must(t, err)
	return message
}
