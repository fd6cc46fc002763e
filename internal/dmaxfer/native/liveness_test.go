package native

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// pulsesUntilTheEnd counts the pulses until a transfer is given up whose last progress was a while before the peer's
// last heartbeat. A peer that goes on sends one in each pulse.
func pulsesUntilTheEnd(t *testing.T, without int, goesOn bool) (pulses int, err error) {
	t.Helper()
	var l liveness
	l.start(negotiate.Host, 3*time.Second)
	defer l.stop()
	for range without {
		l.received()
		if err := l.check(0); err != nil {
			t.Fatal(err)
		}
	}
	for l.received(); err == nil && pulses <= 2*l.limit; pulses++ {
		if goesOn {
			l.received()
		}
		err = l.check(0)
	}
	if pulses > l.limit+1 {
		t.Errorf("it took %d pulses, limit %d", pulses, l.limit)
	}
	return pulses, err
}

// A peer that was stopped is reported as silent, however long before that the last progress was. One that sends
// heartbeats is given up for the lack of progress.
func TestStoppedPeerIsReportedAsSilent(t *testing.T) {
	for _, without := range []int{0, 1, 7, 29} {
		_, err := pulsesUntilTheEnd(t, without, false)
		if !errors.Is(err, job.ErrPeerIdle) || !strings.Contains(err.Error(), "no message from the DPU for 3s") {
			t.Errorf("silent %d pulses after the last progress: %v", without, err)
		}
		pulses, err := pulsesUntilTheEnd(t, without, true)
		if !errors.Is(err, job.ErrIdle) || strings.Contains(err.Error(), "no message") {
			t.Errorf("with heartbeats, %d pulses after the last progress: %v", without, err)
		}
		if l := job.PulsesIn(3*time.Second, job.PulseOf(3*time.Second)); pulses != l+1-without {
			t.Errorf("given up after %d pulses, %d pulses after the last progress", pulses, without)
		}
	}
}

// The log says once that a peer has fallen silent, and again after it has been heard.
func TestSilenceIsNotedOnce(t *testing.T) {
	var l liveness
	l.start(negotiate.Host, 30*time.Second)
	defer l.stop()
	for range 2 {
		l.received()
		l.progressed()
		noted := 0
		for range l.limit {
			if err := l.check(time.Hour); err != nil {
				t.Fatal(err)
			}
			if l.fellSilent() {
				noted++
			}
		}
		if noted != 1 {
			t.Errorf("noted %d times", noted)
		}
	}
}

// What a slow network has carried of a chunk is progress, but not a byte now and then.
func TestIncompleteChunksAreProgress(t *testing.T) {
	for bytes, enough := range map[int64]bool{carriedStep: true, 1: false} {
		_, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
		tr := newTransfer(Config{Side: negotiate.DPU, Conn: dpu, File: &job.LocalFile{}}, started(t))
		tr.watch.start(negotiate.DPU, 3*time.Second)
		defer tr.watch.stop()
		var carried int64
		tr.carried = func() int64 { return carried }
		var err error
		for n := 0; n < 3*tr.watch.limit && err == nil; n++ {
			carried += bytes
			tr.watch.received()
			err = tr.beat(t.Context())
		}
		if enough && err != nil || !enough && !errors.Is(err, job.ErrIdle) {
			t.Errorf("%d bytes in each pulse: %v", bytes, err)
		}
	}
}
