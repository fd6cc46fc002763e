package network

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// A wait that ends in the middle of an attempt reports why the attempts before it failed.
func TestReasonOfTheLastWholeAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		_, err := retry(t.Context(), time.Second, func(ctx context.Context) (*Control, error) {
			if attempts++; attempts <= 2 {
				return nil, syscall.ECONNREFUSED
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, comch.ErrPeerAbsent) || !errors.Is(err, syscall.ECONNREFUSED) || attempts != 3 {
			t.Errorf("after %d attempts: %v", attempts, err)
		}
	})
}
