// Package doctor checks the requirements of a copy on this machine and says how to meet them.
//
// A check judges what a machine, a value that tests can build, says about itself; each finding is one line with a fix.
// Nothing here changes anything, connects to a peer or moves data; package probe does, for results that are printed
// here.
package doctor

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/probe"
	"github.com/dma-copy/dma-copy/internal/report"
)

// Run examines this machine, makes the probes unless they are nil, and prints what both have found. It returns an error
// if a check has failed or the device is not as assumed, and otherwise the error of the probes.
func Run(w io.Writer, s Settings, probes func() ([]probe.Result, error)) error {
	findings := examine(thisMachine(s), s)
	if probes == nil {
		return writeFindings(w, findings, nil, nil, s)
	}
	results, err := probes()
	return writeFindings(w, findings, results, err, s)
}

// examine runs every check, in the order in which problems are best fixed.
func examine(m machine, s Settings) []finding {
	switch {
	case s.Driver.Name == string(connect.DriverUCX):
		return examineNetwork(m, s)
	case s.Listen.IsValid() && s.Device == "" && s.Representor == "":
		return append(examineListen(m, s), checkUser(m))
	case s.Listen.IsValid():
		return append(examineListen(m, s), examineDevices(m, s)...)
	default:
		return examineDevices(m, s)
	}
}

func examineDevices(m machine, s Settings) []finding {
	installed, installErr := m.installation()
	found, driverErr := m.inventory()
	findings := []finding{
		checkMode(m.root), checkInstall(installed, installErr, s), checkDriver(found.Driver, driverErr, installErr, s),
	}
	if driverErr == nil {
		findings = append(findings, checkTimeModel(found.Driver)...)
		findings = append(findings, checkDevices(found.Devices, s))
		findings = append(findings, checkEachDevice(selected(found.Devices, s.Device))...)
		findings = append(findings, checkRepresentors(found.Devices, s))
		if found.Driver.Hardware {
			findings = append(findings, checkMemlock(m, window.DefaultWindow,
				"enough for a DPU; a host locks the whole file"), checkVerbs(m))
		}
		findings = append(findings, checkPlacement(m, found, s)...)
	}
	findings = append(findings, checkUser(m))
	if s.Driver.Name != device.DriverDOCA && !found.Driver.Hardware && !errors.Is(driverErr, doca.ErrNoCgo) {
		dir, err := m.softDir()
		findings = append(findings, checkSoftDir(dir, err, m.user().id))
	}
	findings = append(findings, checkLeftovers(m))
	findings = append(findings, checkPartials(m)...)
	if s.Peer && !s.Probe && driverErr == nil {
		findings = append(findings, checkPeer(m, found, s))
	}
	return findings
}

// Settings holds the settings of doctor.
type Settings struct {
	option.Logging
	Driver          device.Driver
	Device          string // as for a copy
	Representor     string // as for a copy
	Placement       placement.Wish
	Peer            bool          // also check for the other side, or with Probe try what needs it
	Probe           bool          // try what is assumed of the device
	Wait            time.Duration // for the other side, with Probe and Peer
	contact.Network               // checked with DriverUCX, TrafficClass also with Listen
	IdleTimeout     time.Duration // of copies, from which Network's acknowledgements are derived
	Keys            string
	Listen          netip.AddrPort // to be free; without a device none is checked then; not valid: not given
	Output          option.OutputForm
	Quiet           bool // print failures only
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(
		device.CommonOptions(&s.Logging, &s.Driver),
		[]option.Option{device.Option(&s.Device), device.Representor(&s.Representor)},
		device.PlacementOptions(&s.Placement),
		[]option.Option{option.Everyday(option.Switch(option.AddedFlags, "peer", &s.Peer,
			"Also check for the peer of -p's device, on the software device only: on hardware that would use up the "+
				"peer's waiting session. With --probe on both sides, also try what needs both")),
			option.Everyday(option.Switch(option.AddedFlags, "probe", &s.Probe,
				"Also try on the device each thing that this program assumes of it; writes nothing but its own "+
					"memory")),
			option.Duration(option.AddedFlags, "wait", &s.Wait, "30s", option.ParsePositiveDuration,
				"With --probe and --peer: timeout for the other side to run the same command").In(option.TopicLimits)},
		s.Network.Table(),
		[]option.Option{
			device.IdleTimeout(&s.IdleTimeout,
				"ucx: timeout of copies without progress, from which acknowledgements are derived"),
			option.Directory(option.AddedFlags, "keys", &s.Keys,
				"With --listen or ucx: directory of the keys to check").In(option.TopicTrust),
			option.Everyday(contact.ListenOption(&s.Listen,
				"Check that a daemon could listen there; without -p and -r no device is checked then")),
			option.Output(&s.Output, "Findings as text, or as one JSON object, on stdout"),
			option.Quiet(&s.Quiet, "Print findings with FAIL only"),
		},
	)
}

// childVariable makes "doctor --probe" a process that another one of it kills, to see how the other side notices.
const childVariable = "DMA_COPY_DOCTOR_CHILD"

// Command returns the command doctor.
func Command() root.Command {
	var s Settings
	return root.Command{
		Name:    "doctor",
		Summary: "Check the requirements of a copy, suggest fixes",
		About: `Checks what copies need and changes nothing. Each check is one line: ok, warn or
FAIL, what was found, and after two dashes what to do about it. The exit code
is 0 without a FAIL, else the code of the first: 6, or 13 with --require-hw, 7
where only the other side is missing, or 3 where a copy would refuse a setting.
With --driver ucx it checks what copies to other machines need, with --listen
what a daemon for other machines needs, which is no device and no UCX.

--probe also tries on the device, in less than a minute, what this program
assumes of hardware and driver. With --peer, both sides run the command, and
what needs both of them is tried, too. Each line is "as assumed", "differs" with
what that means for copies, or "could not be tried" with the reason. The exit
code is 6 if something differs, 7 if the other side did not come, and 11 if its
results are not known here. Nothing but memory of these processes is written.
For a report, send the output of both sides with -o json.
`,
		Examples: `host$ dma-copy doctor -p b1:00.1 --peer
dpu$  dma-copy doctor -p 03:00.1 -r b1:00.1 --require-hw
host$ dma-copy doctor --probe --peer -p b1:00.1
dpu$  dma-copy doctor --probe --peer -p 03:00.1 -r b1:00.1
lab$  dma-copy doctor --listen :7483
`,
		Settings: &s,
		Run: func(ctx context.Context, streams root.Streams, _ []string, log zerolog.Logger) error {
			return runDoctor(ctx, streams, streams.Stdout, s, log)
		},
	}
}

func runDoctor(ctx context.Context, streams root.Streams, w io.Writer, s Settings, log zerolog.Logger) error {
	if !s.Probe {
		return Run(w, s, nil)
	}
	if s.Listen.IsValid() {
		return exit.Usagef("--probe conflicts with --listen: probes need a device")
	}
	if err := connect.CheckDriver(s.Driver.Options()); err != nil {
		return err
	}
	probes := func() ([]probe.Result, error) { return probeDevice(ctx, streams, s, log) }
	if _, isChild := streams.Env(childVariable); isChild {
		_, err := probes()
		return err
	}
	return Run(w, s, probes)
}

// Examine writes the findings about a device as JSON, with probes if one is named. With peer, both sides do.
func Examine(
	ctx context.Context, streams root.Streams, w io.Writer, of device.Selected, peer bool, wait time.Duration,
	log zerolog.Logger,
) error {
	s := Settings{
		Logging: of.Logging, Driver: of.Driver, Device: of.Device, Representor: of.Representor, Probe: of.Device != "",
		Output: option.OutputJSON, Peer: peer,
	}
	if peer {
		s.Wait = wait
	}
	return runDoctor(ctx, streams, w, s, log)
}

// probeDevice tries what is assumed of the device that the settings select.
func probeDevice(ctx context.Context, streams root.Streams, s Settings,
	log zerolog.Logger) (results []probe.Result,
	err error) {
	chosen := inventory.Selection{Device: s.Device, Representor: s.Representor, Role: inventory.RoleAuto}
	on, err := connect.Open(s.Driver.Options(), chosen, log)
	if err != nil {
		return nil, err
	}
	defer on.End(&err)
	o := probe.Options{
		Side: on.Is, Device: on.Device, Representor: s.Representor, Peer: s.Peer, Wait: s.Wait, Log: log,
		Child: func() *exec.Cmd {
			child := exec.Command("/proc/self/exe", childArguments(s)...)
			child.Env = append(streams.Environ(), childVariable+"=1")
			return child
		},
	}
	if _, isChild := streams.Env(childVariable); isChild {
		return nil, beChild(ctx, o, streams.Stdin)
	}
	wait := report.WaitForCommand(on.Is, on.HostFunction(s.Representor), "dma-copy doctor --probe --peer", s.Wait)
	stop := func() {}
	if s.Peer {
		waits := root.WaitOutput(streams, s.Output, s.Quiet, log)
		stop = sync.OnceFunc(output.Waiting(wait, waits, root.ProgressRequests(ctx)))
	}
	o.Met = stop
	results, err = probe.Run(ctx, o)
	stop()
	if err != nil {
		err = report.InRequest("probes", &report.SideError{Side: on.Is, Err: wait.Explain(err)})
	}
	return results, err
}

// childArguments are the arguments of the doctor that is to be killed: the same device with the same driver.
func childArguments(s Settings) []string {
	args := []string{"doctor", "--probe", "--peer", "--driver", s.Driver.Name}
	for _, given := range []struct{ flag, value string }{
		{"--pci-addr", s.Device}, {"--rep-pci", s.Representor}, {"--doca-libdir", s.Driver.LibraryDir},
	} {
		if given.value != "" {
			args = append(args, given.flag, given.value)
		}
	}
	return args
}

// beChild ends with the standard input, which the process that kills this one holds open.
func beChild(ctx context.Context, o probe.Options, stdin io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return probe.Child(ctx, o)
}
