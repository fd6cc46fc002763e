//go:build cgo

package comch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// Where the start of a client without a server fails, a host waits all the same, and the code is in the error.
func TestStartAborts(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_QUIRKS", "start_aborts")
	t.Run("DialWaitsForListener", TestDialWaitsForListener)
	t.Run("RedialGivesUp", TestRedialGivesUp)
	t.Run("DialOnce", TestDialOnce)
	t.Run("Finder", TestFinderFindsOneServerAfterTheOther)
	s := docatest.OpenSides(t, "")
	wait := shortWait
	for ; wait < longWait; wait *= 2 { // until an attempt has ended in time
		_, err := comch.NewDialer(s.Host, serverName, comch.Within(wait)).Dial(t.Context())
		mustBe(t, err, comch.ErrPeerAbsent)
		if errors.Is(err, doca.CodeConnectionAborted) && strings.Contains(err.Error(), "CONNECTION_ABORTED") {
			return
		}
	}
	t.Errorf("after %s the error does not name the code of the last attempt", wait)
}

// A thousand hosts connect to one server, one after the other; every second one is lost without a goodbye. In the end
// the server takes hosts as in the beginning, also where one that it did not disconnect would keep out the next.
func TestThousandReconnects(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_QUIRKS", "untold_clients,late_disconnect_crash")
	t.Setenv("DMA_COPY_SOFT_FAULTS", "cut_every=2")
	s := docatest.OpenSides(t, "max_clients=1")
	listener := listen(t, s)
	dialer := comch.NewDialer(s.Host, serverName, comch.Within(longWait))
	lost := 0
	for range 1000 {
		host, err := dialer.Dial(t.Context())
		mustBe(t, err, nil)
		dpu := accept(t, listener)
		if err := host.Send(t.Context(), []byte("here")); err != nil {
			mustBe(t, err, comch.ErrPeerLost)
			lost++
		} else {
			mustReceive(t, dpu, []byte("here"))
		}
		mustClose(t, host)
		mustHaveEnded(t, dpu, comch.ErrPeerLost)
		mustClose(t, dpu)
	}
	if lost != 500 {
		t.Errorf("%d hosts were lost, want 500", lost)
	}
}
