//go:build cgo

package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/exit"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
)

// measurement is one of a MiB in chunks of 4 KiB.
func measurement(d protocol.CopyDirection) protocol.MeasureRequest {
	return protocol.MeasureRequest{Direction: d, Lanes: 2, Chunk: 4096, Depth: 8, Size: 1 << 20}
}

func (w *world) measure(c *Client, r protocol.MeasureRequest) (job.Summary, error) {
	return c.Measure(w.Context(), r, w.copyOf("none", "none/none").Options)
}

// Both directions are measured one after the other, with the daemon's own limits, no file is touched, and the daemon
// has a record of it.
func TestMeasure(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		for i, d := range []protocol.CopyDirection{protocol.CopyPush, protocol.CopyPull, protocol.CopyPush} {
			summary, err := w.measure(c, measurement(d))
			must(w.T, err)
			if summary.Sent != (d == protocol.CopyPush) || summary.Size != 1<<20 || summary.Depth != 4 {
				w.Errorf("%s: %+v", d, summary)
			}
			r := w.records()[i]
			if r.Operation != Measure || r.Bytes != 1<<20 || r.Err != nil || r.Transfers() || r.DataPath != "dma" {
				w.Errorf("%s: %+v", d, r)
			}
		}
	})
}

// A key may measure what it may copy, in windows that the daemon permits, and on its paths.
func TestMeasureIsRefused(t *testing.T) {
	readOnly := func(w *world) {
		w.config.Shares = []share.Share{{Name: "out", Path: "/srv/out", Access: share.Read}}
	}
	inWorld(t, readOnly, func(w *world) {
		c := w.alice()
		defer c.Close()
		wide, other := measurement(protocol.CopyPull), measurement(protocol.CopyPull)
		lanes := measurement(protocol.CopyPull)
		lanes.Lanes = wire.MaxLanes
		wide.Chunk, wide.Depth, other.Path = 1<<20, 65, wire.PathFast
		for want, r := range map[string]protocol.MeasureRequest{
			"this key may not write to any share":      measurement(protocol.CopyPush),
			"exceeds the daemon's limit of 64 MiB":     wide,
			"64 lanes exceed the daemon's limit of 2":  lanes,
			"the daemon does not permit the path fast": other,
		} {
			_, err := w.measure(c, r)
			refusal, is := errors.AsType[*protocol.Refusal](err)
			if !is || !strings.Contains(refusal.Text, want) {
				w.Errorf("got %v, want %q", err, want)
			}
		}
		_, err := w.measure(c, measurement(protocol.CopyPull))
		must(w.T, err)
	})
}

// A measurement has no more lanes than the daemon's own copies: their engines are kept for the next copy.
func TestMeasuredLanes(t *testing.T) {
	inWorld(t, func(w *world) { w.config.Copy.Lanes = 1 }, func(w *world) {
		c := w.alice()
		defer c.Close()
		_, err := w.measure(c, measurement(protocol.CopyPull))
		mustRefuse(w.T, err, wire.AbortLimit, "2 lanes exceed the daemon's limit of 1")
	})
}

// A measurement that takes too long ends, and the connection then serves others.
func TestLongMeasurement(t *testing.T) {
	slow := func(w *world) { w.config.Limits.Bandwidth = 1 << 20 }
	inWorld(t, slow, func(w *world) {
		c := w.alice()
		defer c.Close()
		long := measurement(protocol.CopyPush)
		long.Size = 64 << 20
		if _, err := w.measure(c, long); err == nil || exit.Code(err) != exit.Limit {
			w.Errorf("got %v", err)
		}
		if r := w.records()[0]; r.Duration < longestMeasurement || !errors.Is(r.Err, job.ErrLimit) {
			w.Errorf("the record is %+v", r)
		}
		_, err := w.measure(c, measurement(protocol.CopyPush))
		must(w.T, err)
	})
}

// A server for nothing but measurements needs neither shares nor keys.
func TestMeasuresOnly(t *testing.T) {
	alone := func(w *world) {
		w.config.AuthNone, w.config.Trust, w.config.Shares, w.config.MeasuresOnly = true, nil, nil, true
		w.config.Copy = dmaxfer.Options{Options: role.Options{Software: "test 1", Log: w.config.Log}}
	}
	inWorld(t, alone, func(w *world) {
		raw, shared := w.dial("b1:00.1")
		c, err := Connect(w.Context(), ClientConfig{
			Conn: raw, Memory: fixed(shared), Verify: secure.AnyKey, Anonymous: true, Software: "test 1", Log: w.log,
		})
		must(w.T, err)
		defer c.Close()
		_, err = w.measure(c, measurement(protocol.CopyPull))
		must(w.T, err)
		_, err = c.Push(w.Context(), w.copyOf("a", "box/a"))
		if err == nil {
			w.Error("a file was copied")
		}
	})
}
