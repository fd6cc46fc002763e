//go:build cgo

package ping

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// piped returns both sides over a connection within this process. They are closed at the end of the test.
func piped(t *testing.T) (sides [2]*Conversation) {
	t.Helper()
	one, other := comch.Pipe(4080)
	conns := [2]*comch.PipeEnd{wire.Host: one, wire.DPU: other}
	bothSides(t, func(side wire.Side) error {
		o := Meeting{Side: side, IdleTimeout: 30 * time.Second, Log: zerolog.Nop()}
		c, err := begin(t.Context(), o, conns[side], conns[side].Close)
		sides[side] = c
		return err
	})
	t.Cleanup(func() { one.Close(); other.Close() })
	return sides
}

// bothSides runs f for both sides at once.
func bothSides(t *testing.T, f func(wire.Side) error) {
	t.Helper()
	var running sync.WaitGroup
	for _, side := range []wire.Side{wire.Host, wire.DPU} {
		running.Go(func() {
			if err := f(side); err != nil {
				t.Errorf("%s: %v", side, err)
			}
		})
	}
	running.Wait()
}

func TestSwapOverTheDevice(t *testing.T) {
	sides := docatest.OpenSides(t, "")
	reports := [2]string{
		wire.Host: `{"side":"host"}` + strings.Repeat("ö€", 40_000), wire.DPU: strings.Repeat("d", MaxAnswer),
	}
	bothSides(t, func(side wire.Side) error {
		o := Meeting{Side: side, Device: sides.Host, Name: "dma copy test", Wait: 30 * time.Second,
			IdleTimeout: 30 * time.Second, Log: zerolog.Nop()}
		if side == wire.DPU {
			o.Device, o.Representor = sides.DPU, sides.Host.Info().PCIAddress
		}
		c, err := Meet(t.Context(), o)
		if err != nil {
			return err
		}
		peers, err := c.Swap(t.Context(), "bundle", []byte(reports[side]))
		if string(peers) != reports[side.Other()] {
			t.Errorf("%s: got %d bytes, want %d", side, len(peers), len(reports[side.Other()]))
		}
		return errors.Join(err, c.Close())
	})
}

func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sides := piped(t)
		answers := map[string]string{
			"empty": "", "short": "yes", "too long": strings.Repeat("a", MaxAnswer+1), "bytes": "\xff",
		}
		handle := func(_ context.Context, question string) ([]byte, error) {
			if answer, is := answers[question]; is {
				return []byte(answer), nil
			}
			return nil, errors.New("never heard\x1b of it")
		}
		bothSides(t, func(side wire.Side) error {
			return sides[side].Turns(t.Context(), func(ctx context.Context) error {
				for question, want := range map[string]string{"empty": "", "short": "yes"} {
					if answer, err := sides[side].Ask(ctx, question); string(answer) != want || err != nil {
						t.Errorf("%s: %q, error %v", question, answer, err)
					}
				}
				for question, want := range map[string]string{
					"unknown": `never heard\x1b of it`, "too long": "262145 bytes", "bytes": "no text",
				} {
					_, err := sides[side].Ask(ctx, question)
					if refused, is := errors.AsType[*PeerError](err); !is || !strings.Contains(refused.Error(), want) {
						t.Errorf("%s: error %v", question, err)
					}
				}
				if _, err := sides[side].Ask(ctx, strings.Repeat("q", MaxQuestion+1)); err == nil {
					t.Error("a long question was asked")
				}
				return nil
			}, handle)
		})
	})
}

// reply sends pieces, each after a delay.
func (c *Conversation) reply(t *testing.T, delay time.Duration, pieces ...string) {
	for _, piece := range pieces {
		if _, err := c.receive(t.Context(), service.Pinged); err != nil {
			return
		}
		time.Sleep(delay)
		if message, err := c.session.Pong(nil, []byte(piece)); err == nil {
			_ = c.transmit(t.Context(), message)
		}
	}
}

// TestHostilePieces sends pieces that no answering side of this program sends.
func TestHostilePieces(t *testing.T) {
	least := strings.Repeat("a", leastPiece)
	for _, pieces := range [][]string{
		{"x\ntext"}, {"-1\n"}, {"262145\ntext"}, {"2\ntext"}, {"9\n"}, {"129\n" + least, "128\n" + least}, {"8"},
		{""}, {"129\n" + least[1:]},
	} {
		synctest.Test(t, func(t *testing.T) {
			sides := piped(t)
			host := sides[wire.Host]
			go host.reply(t, 0, pieces...)
			answer, err := sides[wire.DPU].Ask(t.Context(), "question")
			if !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("%q: answer %q, error %v", pieces, answer, err)
			}
		})
	}
}

func TestSlowPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sides := piped(t)
		piece := "192\n" + strings.Repeat("a", leastPiece)
		var replying sync.WaitGroup
		replying.Go(func() { sides[wire.Host].reply(t, 20*time.Second, piece, piece, piece) })
		answer, err := sides[wire.DPU].Ask(t.Context(), "question")
		if !errors.Is(err, job.ErrIdle) || !strings.Contains(err.Error(), "no complete answer from the host") {
			t.Errorf("%d bytes, error %v", len(answer), err)
		}
		replying.Wait()
	})
}

// A peer that always asks something else is answered for a minute.
func TestEndlessQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sides := piped(t)
		go func() {
			var err error
			for range 100 {
				time.Sleep(time.Second)
				if _, err = sides[wire.DPU].Ask(t.Context(), "more?"); err != nil {
					return
				}
			}
			_ = sides[wire.DPU].Close()
		}()
		err := sides[wire.Host].Turns(t.Context(), nil, func(context.Context, string) ([]byte, error) {
			return nil, nil
		})
		if !errors.Is(err, job.ErrIdle) || !strings.Contains(err.Error(), "took more than 1m0s") {
			t.Errorf("error %v", err)
		}
		time.Sleep(time.Second)
	})
}

// A question that waits when the time is over is not answered.
func TestLateQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sides := piped(t)
		go func() { _, _ = sides[wire.DPU].Ask(t.Context(), "too late?") }()
		synctest.Wait()
		err := sides[wire.Host].answer(dead(t), func(context.Context, service.Ping) ([]byte, error) {
			t.Error("it is answered")
			return nil, nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dpu := piped(t)[wire.DPU]
		for range 2000 { // more than the connection holds
			_ = dpu.conn.Send(dead(t), []byte("x"))
		}
		if _, err := dpu.Ask(t.Context(), "anybody?"); !errors.Is(err, job.ErrIdle) {
			t.Errorf("error %v", err)
		}
	})
}

// dead returns a context that has ended: a message is sent, or waits, but nothing waits for it.
func dead(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestPeerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sides := piped(t)
		if err := sides[wire.Host].Close(); err != nil {
			t.Error(err)
		}
		if _, err := sides[wire.DPU].Ask(t.Context(), "anybody?"); !errors.Is(err, comch.ErrPeerLost) {
			t.Errorf("error %v", err)
		}
	})
}
