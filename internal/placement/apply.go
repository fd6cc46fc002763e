package placement

import (
	"os"
	"runtime"

	"github.com/rs/zerolog"
)

// Apply pins the process to the CPUs where its copies should run, near the device at address, which is empty for a
// device on no NUMA node. Call it once, before there is memory that would stay behind. Unless the wish is automatic, a
// failure is an error; else it is logged, and the copy may be slower.
func Apply(machine func() (Machine, error), address string, wish Wish, log zerolog.Logger) error {
	decision, err := Choose(machine, wish, address)
	if err == nil && !decision.CPUs.Empty() {
		if err = runOn(decision.CPUs); err == nil {
			useCores()
		}
	}
	if err != nil && !wish.IsAuto() {
		return err
	}
	logDecision(log, decision, err, wish)
	return nil
}

// NearAddress returns the address of the device that the process should be near: empty for the software device, which
// is on no NUMA node.
func NearAddress(hardware bool, address string) string {
	if !hardware {
		return ""
	}
	return address
}

// Choose decides where a copy with the device at address runs, which is empty for a device on no NUMA node. The error
// of a wish that cannot be fulfilled has the code exit.Usage and names the flag.
func Choose(machine func() (Machine, error), wish Wish, address string) (Decision, error) {
	m, err := machine()
	if err != nil {
		return Decision{}, err
	}
	return m.decide(wish, address)
}

// Flag spells the wish as on the command line, for messages. The zero Wish is "--numa auto".
func (w Wish) Flag() string {
	if !w.Cores.Empty() {
		return "--cores " + w.Cores.String()
	}
	return "--numa " + w.Node.String()
}

// logDecision logs where the process is now, or why it is not near its device, and warns if it may not use all CPUs of
// --cores.
func logDecision(log zerolog.Logger, decision Decision, err error, wish Wish) {
	if decision.HasNode() {
		log = log.With().Int("numa_node", decision.Node).Logger()
	}
	switch {
	case err != nil:
		log.Warn().Err(err).Msg("cannot pin the process to the NUMA node of its device")
		return
	case decision.HasNode() && decision.CPUs.Empty():
		log.Info().Msg("this process may not use any CPU of its device's NUMA node")
		return
	case decision.CPUs.Empty():
		return
	case !wish.Cores.Empty() && decision.CPUs != wish.Cores:
		log.Warn().Str("cores", wish.Cores.String()).Msg("this process may not use all CPUs of --cores")
	}
	log.Info().Str("cpus", decision.CPUs.String()).Int("gomaxprocs", runtime.GOMAXPROCS(0)).
		Msg("process pinned to these CPUs")
}

// useCores sets GOMAXPROCS to the CPUs of the process, as far as a container's limit allows, unless the environment
// sets it.
func useCores() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS()
	}
}
