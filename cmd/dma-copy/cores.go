package main

import (
	"errors"
	"os"
	"runtime"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"
)

// takePlace moves the process to the CPUs where its copy should run, before there is memory that would stay behind. What nobody
// asked for may fail: then a copy is slower than it could be.
func takePlace(machine func() (placement.Machine, error), hardware bool, address string, wish placement.Wish, log zerolog.Logger) error {
	place, err := choosePlace(machine, wish, placedBy(hardware, address))
	if err == nil && !place.CPUs.Empty() {
		err = placement.RunOn(place.CPUs)
	}
	if err != nil && !wish.IsAuto() {
		return err
	}
	if err != nil || place.CPUs.Empty() {
		shareCores(hardware)
	} else {
		useCores()
	}
	logPlace(log, place, err, wish)
	return nil
}

// placedBy is the address of the device that a process should be near. The software device is nowhere.
func placedBy(hardware bool, address string) string {
	if !hardware {
		return ""
	}
	return address
}

// choosePlace decides where a copy with the device at this address runs; an empty one is nowhere. The error of a wish that does not fit it has the
// code exit.Usage and names the flag.
func choosePlace(machine func() (placement.Machine, error), wish placement.Wish, address string) (placement.Decision, error) {
	m, err := machine()
	if err != nil {
		return placement.Decision{}, err
	}
	place, err := m.Decide(wish, address)
	if refusal, is := errors.AsType[placement.Refusal](err); is {
		return place, exit.Usagef("%s: %w", placeFlag(wish), refusal)
	}
	return place, err
}

// placeFlag spells what was asked for.
func placeFlag(wish placement.Wish) string {
	if !wish.Cores.Empty() {
		return "--cores " + wish.Cores.String()
	}
	return "--numa " + wish.Node.String()
}

// logPlace says where the process is now, or why it is not near its device, and warns of CPUs that were named in vain.
func logPlace(log zerolog.Logger, place placement.Decision, err error, wish placement.Wish) {
	if place.HasNode() {
		log = log.With().Int("numa_node", place.Node).Logger()
	}
	switch {
	case err != nil:
		log.Warn().Err(err).Msg("cannot pin the process to the NUMA node of its device")
		return
	case place.HasNode() && place.CPUs.Empty():
		log.Info().Msg("this process may not use any CPU of its device's NUMA node")
		return
	case place.CPUs.Empty():
		return
	case !wish.Cores.Empty() && place.CPUs != wish.Cores:
		log.Warn().Str("cores", wish.Cores.String()).Msg("this process may not use all CPUs of --cores")
	}
	log.Info().Str("cpus", place.CPUs.String()).Int("gomaxprocs", runtime.GOMAXPROCS(0)).
		Msg("process pinned to these CPUs")
}

// useCores has Go run as much at once as there are CPUs for, and as a container's limit leaves. GOMAXPROCS in the environment
// decides otherwise.
func useCores() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS()
	}
}

// shareCores leaves half of the processors to the other side where that runs on this machine, too, as it does with the software device:
// two processes that both try to use all of them spend much of their time on waking each other. GOMAXPROCS in the environment decides
// otherwise.
func shareCores(hardware bool) {
	if hardware || os.Getenv("GOMAXPROCS") != "" {
		return
	}
	runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2)) // of what the machine and a container's limit leave
}
