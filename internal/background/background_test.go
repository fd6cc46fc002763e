package background

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStopWaitsForACall(t *testing.T) {
	asked, returned := make(chan os.Signal), false
	stop := Answer(asked, func() {
		time.Sleep(time.Millisecond)
		returned = true
	})
	asked <- syscall.SIGUSR1
	stop()
	if !returned {
		t.Error("stop has not waited")
	}
}

func TestEachRequestIsAnswered(t *testing.T) {
	asked, answers := make(chan os.Signal), 0
	stop := Answer(asked, func() { answers++ })
	for range 3 {
		asked <- syscall.SIGUSR1
	}
	stop()
	if answers != 3 {
		t.Errorf("%d answers", answers)
	}
	Answer(nil, nil)()
}

func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticks := 0
		stop := Watch(time.Second, func() { ticks++ }, nil, nil)
		time.Sleep(3500 * time.Millisecond)
		stop()
		if ticks != 3 {
			t.Errorf("%d ticks", ticks)
		}
	})
}
