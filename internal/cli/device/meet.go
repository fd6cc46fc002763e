// Package device has the options that select the driver and the device of a command, and meets another command.
package device

import (
	"context"
	"sync"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/report"
)

// Meeting is this side of a command that both sides run. It says that it waits for the command on the other side until
// met is called.
type Meeting struct {
	*connect.Side
	Met  func()
	wait report.Wait
}

// Meet opens this side of a command that both sides run.
func Meet(
	ctx context.Context, r Reach, command string, waits output.WaitOutput, log zerolog.Logger,
) (*Meeting, error) {
	chosen := inventory.Selection{Device: r.Device, Representor: r.Representor, Role: r.Role}
	on, err := connect.Open(r.Driver.Options(), chosen, log)
	if err != nil {
		return nil, err
	}
	wait := report.WaitForCommand(on.Is, on.HostFunction(r.Representor), command, r.Wait)
	return &Meeting{on, sync.OnceFunc(output.Waiting(wait, waits, root.ProgressRequests(ctx))), wait}, nil
}

// End ends the side, and explains an error of work that has met nobody.
func (m *Meeting) End(err *error) {
	if *err != nil {
		*err = &report.SideError{Side: m.Side.Is, Err: m.wait.Explain(*err)}
	}
	m.Met()
	m.Side.End(err)
}

// Selected is what a command that copies nothing is told about a device.
type Selected struct {
	option.Logging
	Driver      Driver
	Device      string // empty: the only one that fits
	Representor string // empty: not given
}
