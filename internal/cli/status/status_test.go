package status

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The status is shown at the interval, until the user stops it or there is no answer.
func TestRepeat(t *testing.T) {
	stopped, gone := errors.New("stopped"), errors.New("gone")
	for name, want := range map[string]error{"stopped": stopped, "no daemon": gone} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				shown := 0
				err := repeat(ctx, time.Second, func() error {
					switch shown++; {
					case shown == 3 && want == gone:
						return gone
					case shown == 3:
						time.AfterFunc(time.Second/2, func() { cancel(stopped) })
					}
					return nil
				})
				if !errors.Is(err, want) || shown != 3 {
					t.Errorf("shown %d times, %v", shown, err)
				}
			})
		})
	}
}
