package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

func (p Plan) measureEngine(
	ctx context.Context, driver *doca.Driver, names Sides, moves bool,
) (record *EngineRecord, err error) {
	s, err := openEngineSetup(driver, names)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	defer func() { err = errors.Join(err, s.close()) }()
	candidates, results, err := p.candidates(s, moves)
	if err != nil {
		return nil, err
	}
	p.Tell(fmt.Sprintf("the engine alone: %s in %s each, %s a run", quantity.Count(len(candidates), "combination"),
		quantity.Count(p.Runs+p.Warmup, "round"), SizeText(p.Bytes)))
	outcomes, err := p.Rounds().Measure(ctx, candidates)
	if err != nil {
		return nil, err
	}
	for i := range results {
		results[i].setOutcome(outcomes[i], candidates[i].(*engineCopy).tasks())
	}
	return &EngineRecord{Bytes: p.Bytes, Results: results}, nil
}

func (r *EngineResult) setOutcome(o Outcome, tasks int) {
	if o.Err != nil {
		r.Error = o.Err.Error()
		return
	}
	bytes := float64(tasks) * float64(r.Chunk)
	r.Seconds = o.Spread(SecondsOf)
	r.Rate, r.TasksPerSecond = bytes/r.Seconds.P50, float64(tasks)/r.Seconds.P50
	if cpu := o.Spread(CPUOf); cpu != nil {
		r.CPUPerGiB = cpu.P50 / (bytes / gibibyte)
	}
}

// candidates returns all combinations. Those of one direction share its memory, because only one runs at a time.
func (p Plan) candidates(s *engineSetup, moves bool) (all []Candidate, results []EngineResult, err error) {
	window, err := p.window(s.dpu)
	if err != nil {
		return nil, nil, err
	}
	for _, direction := range p.Directions {
		memory, err := s.newMemoryPair(direction, window)
		if err != nil {
			return nil, nil, err
		}
		for _, chunk := range p.Chunks {
			for _, depth := range p.Depths {
				all = append(all, &engineCopy{
					device: s.dpu, memory: memory, chunk: chunk, depth: depth, bytes: p.Bytes, moves: moves,
				})
				results = append(results, EngineResult{Direction: direction, Chunk: chunk, Depth: depth})
			}
		}
	}
	return all, results, nil
}

// window returns the largest window of the combinations that the device supports; prepare reports the others.
func (p Plan) window(device *doca.Device) (int64, error) {
	deepest, err := device.MaxDepth()
	if err != nil {
		return 0, err
	}
	largest := int64(1)
	for _, chunk := range p.Chunks {
		for _, depth := range p.Depths {
			if taskFits(device, chunk) && depth <= deepest {
				largest = max(largest, chunk*int64(depth))
			}
		}
	}
	const windows = 4 // both ends of both directions
	if most := AvailableMemory() / 2 / windows; largest > most {
		return 0, &job.Error{
			Kind: job.ErrSettings,
			Cause: fmt.Sprintf("--chunks and --depths need windows of %s, but only %s of memory is available",
				SizeText(largest), SizeText(most)),
			Next: "choose smaller values",
		}
	}
	return largest, nil
}

// taskFits reports whether tasks of that size are within the limit of the device, if it has one.
func taskFits(device *doca.Device, chunk int64) bool {
	largest := device.Info().MaxBufferSize
	return largest == 0 || uint64(chunk) <= largest
}

// engineSetup has the devices and the memory of both sides in one process.
type engineSetup struct {
	host, dpu *doca.Device
	opened    []interface{ Close() error }
}

func openEngineSetup(driver *doca.Driver, names Sides) (s *engineSetup, err error) {
	s = &engineSetup{}
	if s.host, err = s.openDevice(driver, names.Host); err != nil {
		return s, err
	}
	s.dpu, err = s.openDevice(driver, names.DPU)
	return s, err
}

func (s *engineSetup) openDevice(driver *doca.Driver, name string) (*doca.Device, error) {
	device, err := driver.OpenDevice(name)
	if err == nil {
		s.opened = append(s.opened, device)
	}
	return device, err
}

func (s *engineSetup) close() error {
	var err error
	for _, opened := range slices.Backward(s.opened) {
		err = errors.Join(err, opened.Close())
	}
	return err
}

// newMemoryPair registers memory on both sides for the DPU's engine, which reads the host's memory or writes to it.
func (s *engineSetup) newMemoryPair(direction Direction, length int64) (memoryPair, error) {
	hostAccess, dpuAccess := doca.RemoteRead, doca.LocalWrite
	if direction == DPUToHost {
		hostAccess, dpuAccess = doca.RemoteWrite, doca.LocalRead
	}
	exported, err := s.alloc(s.host, length, hostAccess)
	if err != nil {
		return memoryPair{}, err
	}
	local, err := s.alloc(s.dpu, length, dpuAccess)
	if err != nil {
		return memoryPair{}, err
	}
	remote, err := s.importRegion(exported)
	if err != nil {
		return memoryPair{}, err
	}
	pair := memoryPair{source: remote, target: local, sourceBytes: exported.Bytes(), targetBytes: local.Bytes()}
	if direction == DPUToHost {
		pair = memoryPair{source: local, target: remote, sourceBytes: local.Bytes(), targetBytes: exported.Bytes()}
	}
	fillNoise(pair.sourceBytes)
	return pair, nil
}

func (s *engineSetup) alloc(device *doca.Device, length int64, access doca.Access) (*doca.Region, error) {
	region, err := device.Alloc(length, access)
	if err == nil {
		s.opened = append(s.opened, region)
	}
	return region, err
}

func (s *engineSetup) importRegion(region *doca.Region) (*doca.Remote, error) {
	descriptor, err := region.Export()
	if err != nil {
		return nil, err
	}
	remote, err := s.dpu.Import(descriptor, region.Address(), region.Len())
	if err == nil {
		s.opened = append(s.opened, remote)
	}
	return remote, err
}
