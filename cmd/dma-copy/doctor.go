package main

import (
	"context"
	"io"
	"os/exec"
	"sync"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/doctor"
	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/probe"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// childVariable makes "doctor --probe" a process that another one of it kills, to see how the other side notices.
const childVariable = "DMA_COPY_DOCTOR_CHILD"

func doctorCommand() command {
	var s config.Doctor
	return command{
		name:    "doctor",
		summary: "Check the requirements of a copy, suggest fixes",
		about: `Checks what copies need and changes nothing. Each check is one line: ok, warn or
FAIL, what was found, and after two dashes what to do about it. The exit code
is 0 without a FAIL, else that of the first: 6, or 13 with --require-hw, 7
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
		examples: `host$ dma-copy doctor -p b1:00.1 --peer
dpu$  dma-copy doctor -p 03:00.1 -r b1:00.1 --require-hw
host$ dma-copy doctor --probe --peer -p b1:00.1
dpu$  dma-copy doctor --probe --peer -p 03:00.1 -r b1:00.1
lab$  dma-copy doctor --listen :7483
`,
		settings: &s,
		run: func(ctx context.Context, streams streams, _ []string, log zerolog.Logger) error {
			return runDoctor(ctx, streams, streams.stdout, s, log)
		},
	}
}

func runDoctor(ctx context.Context, streams streams, w io.Writer, s config.Doctor, log zerolog.Logger) error {
	if !s.Probe {
		return doctor.Run(w, s, nil)
	}
	if s.Listen.IsValid() {
		return exit.Usagef("--probe conflicts with --listen: probes need a device")
	}
	if err := s.Driver.ValidateForDevice(); err != nil {
		return err
	}
	probes := func() ([]probe.Result, error) { return probeDevice(ctx, streams, s, log) }
	if _, isChild := streams.env(childVariable); isChild {
		_, err := probes()
		return err
	}
	return doctor.Run(w, s, probes)
}

// probeDevice tries what is assumed of the device that the settings select.
func probeDevice(ctx context.Context, streams streams, s config.Doctor, log zerolog.Logger) (results []probe.Result,
	err error) {
	chosen := inventory.Selection{Device: s.Device, Representor: s.Representor, Role: inventory.RoleAuto}
	on, err := openSide(s.Driver, chosen, log)
	if err != nil {
		return nil, err
	}
	defer on.end(&err)
	o := probe.Options{
		Side: on.side, Device: on.device, Representor: s.Representor, Peer: s.Peer, Wait: s.Wait, Log: log,
		Child: func() *exec.Cmd {
			child := exec.Command("/proc/self/exe", childArguments(s)...)
			child.Env = append(streams.environ(), childVariable+"=1")
			return child
		},
	}
	if _, isChild := streams.env(childVariable); isChild {
		return nil, beChild(ctx, o, streams.stdin)
	}
	wait := output.WaitForCommand(on.side, on.hostFunction(s.Representor), "dma-copy doctor --probe --peer", s.Wait)
	stop := func() {}
	if s.Peer {
		waits := waitOutput(streams, s.Output, s.Quiet, log)
		stop = sync.OnceFunc(output.Waiting(wait, waits, progressRequests(ctx)))
	}
	o.Met = stop
	results, err = probe.Run(ctx, o)
	stop()
	if err != nil {
		err = output.InRequest("probes", &output.SideError{Side: on.side, Err: wait.Explain(err)})
	}
	return results, err
}

// childArguments are the arguments of the doctor that is to be killed: the same device with the same driver.
func childArguments(s config.Doctor) []string {
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
