package reference

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// fileMemory is the host's side of a transfer: the whole file as memory that the DPU reads or writes. It maps the file,
// so that nothing is held twice; where a driver will not pin such a mapping, the file is held in anonymous memory.
type fileMemory struct {
	region    *doca.Region
	anonymous bool
}

// exposeSource makes the source readable for the DPU.
func exposeSource(ctx context.Context, device *doca.Device, s *disk.Source, log zerolog.Logger) (*fileMemory, error) {
	size := s.Info().Size
	m, err := expose(device, s.File(), size, doca.RemoteRead, log)
	if err != nil || !m.anonymous || size == 0 {
		return m, err
	}
	if err := moveInSteps(ctx, m.region.Bytes()[:size], s.ReadAt); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func expose(
	device *doca.Device, file disk.File, size int64, access doca.Access, log zerolog.Logger,
) (*fileMemory, error) {
	if size == 0 {
		region, err := device.Alloc(placeholderSize, access)
		return &fileMemory{region: region, anonymous: true}, err
	}
	region, err := device.MapFile(file.OS(), size, access)
	if err == nil {
		return &fileMemory{region: region}, nil
	}
	if !errors.As(err, new(*doca.Error)) {
		return nil, err
	}
	log.Warn().Err(err).Int64("bytes", size).
		Msg("the driver cannot pin a mapping of the file, holding the whole file in memory")
	region, err = device.Alloc(size, access)
	return &fileMemory{region: region, anonymous: true}, err
}

// save writes what the DPU wrote to anonymous memory into the target. A mapping needs no save.
func (m *fileMemory) save(ctx context.Context, t *disk.Partial, size int64) error {
	if !m.anonymous || size == 0 {
		return nil
	}
	return moveInSteps(ctx, m.region.Bytes()[:size], t.WriteAt)
}

// moveInSteps splits what would be one long file call, so that a context can interrupt it.
func moveInSteps(ctx context.Context, memory []byte, move func(step []byte, offset int64) error) error {
	return disk.InSteps(ctx, int64(len(memory)), fileStep, nil, func(offset, length int64) error {
		return move(memory[offset:offset+length], offset)
	})
}

// close revokes the DPU's access.
func (m *fileMemory) close() error { return m.region.Close() }
