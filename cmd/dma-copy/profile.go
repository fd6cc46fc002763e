package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// withCPUProfile runs work and writes its CPU profile to a file. If path is empty it only runs work.
func withCPUProfile(path string, work func() error) error {
	if path == "" {
		return work()
	}
	file, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		return &job.Error{
			Kind:  job.ErrTarget,
			Cause: fmt.Sprintf("cannot write the profile %s: %s", quote.Bare(path), disk.Reason(err)),
			Next:  "name another file with --cpuprofile",
		}
	}
	err = work()
	pprof.StopCPUProfile()
	if closeErr := file.Close(); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("write the profile: %w", closeErr))
	}
	return err
}
