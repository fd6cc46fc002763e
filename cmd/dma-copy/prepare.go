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
	log := newLogger(streams, *s.Log())
	warnOfVariables(streams, log)
	if limit := checkDescriptors(); limit != nil {
		err = limit // which may be why a parameter file could not be read
	}
	if err != nil {
		return zerolog.Nop(), err
	}
	for _, note := range notes {
		log.Warn().Msg(note)
	}
	return log, nil
}

// warnOfVariables warns of variables without effect, also where the settings are refused: one may be the reason.
func warnOfVariables(streams streams, log zerolog.Logger) {
	if streams.environ == nil {
		return
	}
	for _, note := range config.MistakenVariables(streams.environ()) {
		log.Warn().Msg(note)
	}
}

// minDescriptors is the number of free file descriptors that a copy needs, with some to spare: a DPU that receives
// opens about 30.
const minDescriptors = 48

// checkDescriptors returns an error if this process cannot open as many files as a copy needs. Later, their lack would
// look like an absent peer or a failing device, or stop Go's runtime.
func checkDescriptors() error {
	for free := range minDescriptors {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // a new file, which the limit of the system concerns, too
		if err != nil {
			return tooFewDescriptors(free, err)
		}
		defer func() { _ = unix.Close(fd) }()
	}
	return nil
}

func tooFewDescriptors(free int, err error) error {
	hint := report.HintProcessFiles
	if errors.Is(err, unix.ENFILE) {
		hint = report.HintSystemFiles
	}
	return exit.Errorf(exit.Usage, hint, "cannot open enough files: %d of %d file descriptors are free (%w)",
		free, minDescriptors, err)
}
