package comch_test

import (
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
)

// faulty is a pair whose host's messages meet the fault. The other way has none.
func faulty(t *testing.T, fault comchtest.Fault) (host, dpu comch.Conn) {
	host, dpu = comchtest.NewPair(100, fault, comchtest.Faultless)
	t.Cleanup(func() {
		mustClose(t, host)
		mustClose(t, dpu)
	})
	mustSend(t, dpu, []byte("undisturbed"))
	mustReceive(t, host, []byte("undisturbed"))
	return host, dpu
}

func TestDropLosesOneMessage(t *testing.T) {
	host, dpu := faulty(t, comchtest.Drop(1))
	for _, message := range []string{"zero", "one", "two"} {
		mustSend(t, host, []byte(message))
	}
	mustReceive(t, dpu, []byte("zero"))
	mustReceive(t, dpu, []byte("two"))
}

func TestTruncateShortensOneMessage(t *testing.T) {
	host, dpu := faulty(t, comchtest.Truncate(1, 2))
	for _, message := range []string{"zero", "one", "two"} {
		mustSend(t, host, []byte(message))
	}
	for _, message := range []string{"zero", "on", "two"} {
		mustReceive(t, dpu, []byte(message))
	}
}

func TestTruncateKeepsWhatIsShorter(t *testing.T) {
	host, dpu := faulty(t, comchtest.Truncate(0, 50))
	mustSend(t, host, []byte("zero"))
	mustReceive(t, dpu, []byte("zero"))
}

func TestCutEndsTheConnection(t *testing.T) {
	host, dpu := faulty(t, comchtest.Cut(1))
	mustSend(t, host, []byte("zero"))
	mustBe(t, host.Send(patient(t), []byte("one")), comch.ErrPeerLost)
	mustReceive(t, dpu, []byte("zero"))
	mustHaveEnded(t, dpu, comch.ErrPeerLost)
	mustHaveEnded(t, host, comch.ErrPeerLost)
}

func TestDelayKeepsMessagesAndOrder(t *testing.T) {
	host, dpu := faulty(t, comchtest.Delay(time.Millisecond))
	for i := range 5 {
		mustSend(t, host, []byte{byte(i)})
	}
	for i := range 5 {
		mustReceive(t, dpu, []byte{byte(i)})
	}
}
