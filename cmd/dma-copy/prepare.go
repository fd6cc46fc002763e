package main

import (
	"errors"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
)

// prepare fills in the settings of a command and returns its logger. With an error the settings hold those values that
// are valid.
func prepare(flags *pflag.FlagSet, streams streams, s config.Settings) (zerolog.Logger, error) {
	notes, err := config.Load(flags, streams.env, s)
	if limit := checkDescriptors(); limit != nil {
		err = limit // which may be why a parameter file could not be read
	}
	if err != nil {
		return zerolog.Nop(), err
	}
	log := newLogger(streams, s.Level())
	for _, note := range notes {
		log.Warn().Msg(note)
	}
	return log, nil
}

// minDescriptors is the number of free file descriptors that a copy needs, with some to spare: a DPU that receives
// opens about 30.
const minDescriptors = 48

// checkDescriptors returns an error if this process cannot open as many files as a copy needs. Later, their lack would
// look like an absent peer or a failing device, or stop Go's runtime.
func checkDescriptors() error {
	var opened []int
	defer func() {
		for _, fd := range opened {
			_ = unix.Close(fd)
		}
	}()
	// The first is a new file, which the limit of the system concerns, too. Duplicates of it take a third of the time.
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	for err == nil {
		if opened = append(opened, fd); len(opened) == minDescriptors {
			return nil
		}
		fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	return tooFewDescriptors(len(opened), err)
}

func tooFewDescriptors(free int, err error) error {
	hint := report.HintProcessFiles
	if errors.Is(err, unix.ENFILE) {
		hint = report.HintSystemFiles
	}
	return exit.Errorf(exit.Usage, hint, "cannot open enough files: %d of %d file descriptors are free (%w)",
		free, minDescriptors, err)
}
