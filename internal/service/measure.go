package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/share"
)

// This file has the measurements of both sides: copies from memory to memory, otherwise made as copies of files.

// MostMeasured is the largest window of a measurement in bytes, and the largest that copies choose by themselves.
const MostMeasured = 64 << 20

// measuredLanes is the limit for the lanes of a daemon whose options have none: as many as copies choose.
const measuredLanes = 2

// longestMeasurement is what one measurement may take on the daemon.
const longestMeasurement = 10 * time.Second

var errLongMeasurement = job.NewError(job.ErrLimit, nil, "measure for a shorter time",
	"a measurement took longer than the daemon's limit of %s", longestMeasurement)

// Measure copies memory to the daemon (CopyPush) or from it (CopyPull), and returns how that went. The request replaces
// the options that it has, too. It fails as Push does, and with ErrCapability if the daemon's version cannot measure.
func (c *Client) Measure(
	ctx context.Context, r protocol.MeasureRequest, o dmaxfer.Options,
) (job.Summary, error) {
	if !c.exchange.session.Measures() {
		return job.Summary{}, job.NewError(job.ErrCapability, nil, "update dma-copy on the other side",
			"the other side (%s) is too old to measure", c.peer.Software)
	}
	asked := c.awaited.begin(Measure, protocol.Place{})
	err := c.send(ctx, func(s *protocol.Session, dst []byte) ([]byte, error) { return s.Measure(dst, r) })
	if err == nil {
		_, err = c.answer(ctx)
	}
	if asked(); err != nil {
		return job.Summary{}, err
	}
	use := job.SourceUse
	if r.Direction == protocol.CopyPull {
		use = job.TargetUse
	}
	setMeasured(&o, r)
	o.Path = job.Only(r.Path)
	return c.transfer(ctx, o, use, "memory")
}

// setMeasured sets the options of a side that measures.
func setMeasured(o *dmaxfer.Options, r protocol.MeasureRequest) {
	o.Measure, o.Lanes = int64(r.Size), int(r.Lanes)
	o.Chunk, o.Depth = lowest(o.Chunk, int64(r.Chunk)), int(lowest(int64(o.Depth), int64(r.Depth)))
	o.Digest, o.Durability, o.Readback, o.NoSparse, o.NoResume = digest.None, 0, false, true, true
}

// measure answers a MEASURE.
func (c *connection) measure(r protocol.MeasureRequest) error {
	return c.perform(Record{Operation: Measure}, func(record *Record) (failed, fatal error) {
		limiters, err := c.authorizeMeasure(r)
		if err != nil {
			return c.refuse(err)
		}
		return c.whenPermitted(record, func(releasePermit func()) (failed, fatal error) {
			side := &copySide{options: c.server.config.Copy, use: job.TargetUse}
			o := &side.options
			setMeasured(o, r)
			c.setCommon(o)
			if o.Limiters = limiters; c.in.Side != wire.Server {
				o.Path = job.Only(r.Path)
			}
			if r.Direction == protocol.CopyPull {
				side.use = job.SourceUse
				side.accepted = protocol.Accepted{Kind: protocol.CopyFile, Size: r.Size}
			}
			return c.transfer(record, side, releasePermit)
		})
	})
}

// authorizeMeasure returns the bandwidth limits of a measurement, which a key may make that may copy in its direction.
func (c *connection) authorizeMeasure(r protocol.MeasureRequest) ([]*rate.Limiter, error) {
	s := c.server
	visible, err := s.visibleShares(c.key)
	if err != nil {
		return nil, err
	}
	needed := neededFor(r.Direction)
	mostLanes := cmp.Or(s.config.Copy.Lanes, measuredLanes)
	may := func(each share.Share) bool { return each.Access.Allows(needed) }
	switch window := int64(r.Chunk) * int64(r.Depth); {
	case !s.config.MeasuresOnly && !slices.ContainsFunc(visible, may):
		return nil, job.NewError(ErrRefused, nil, "ask for the right on the daemon's side",
			"this key may not %s any share, so it may not measure a %s", verbs[needed], r.Direction)
	case window > MostMeasured:
		return nil, job.NewError(job.ErrLimit, nil, "choose smaller --chunks or --depths",
			"a window of %s exceeds the daemon's limit of %s", quantity.Bytes(uint64(window)),
			quantity.Bytes(MostMeasured))
	case int(r.Lanes) > mostLanes: // each has an engine, which is kept for the next copy
		return nil, job.NewError(job.ErrLimit, nil, "choose fewer --lane-counts, or raise --lanes of the daemon",
			"%d lanes exceed the daemon's limit of %d", r.Lanes, mostLanes)
	case c.in.Side != wire.Server && !s.config.Copy.Path.Permits(r.Path):
		return nil, job.NewError(job.ErrCapability, nil, "leave out --path",
			"the daemon does not permit the path %s", r.Path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limitersLocked(c.key), nil
}
