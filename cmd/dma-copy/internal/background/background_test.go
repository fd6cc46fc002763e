package background

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStopWaitsForTheFunction(t *testing.T) {
	returned := false
	stop := Run(func(quit <-chan struct{}) {
		<-quit
		returned = true
	})
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
