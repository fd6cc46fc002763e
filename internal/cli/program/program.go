// Package program is the list of all commands.
package program

import (
	"github.com/dma-copy/dma-copy/internal/cli/bench"
	"github.com/dma-copy/dma-copy/internal/cli/bundle"
	"github.com/dma-copy/dma-copy/internal/cli/completion"
	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/copy"
	"github.com/dma-copy/dma-copy/internal/cli/devices"
	"github.com/dma-copy/dma-copy/internal/cli/doctor"
	"github.com/dma-copy/dma-copy/internal/cli/keys"
	"github.com/dma-copy/dma-copy/internal/cli/local"
	"github.com/dma-copy/dma-copy/internal/cli/ls"
	"github.com/dma-copy/dma-copy/internal/cli/mkdir"
	"github.com/dma-copy/dma-copy/internal/cli/peers"
	"github.com/dma-copy/dma-copy/internal/cli/ping"
	"github.com/dma-copy/dma-copy/internal/cli/rm"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/cli/serve"
	"github.com/dma-copy/dma-copy/internal/cli/status"
	"github.com/dma-copy/dma-copy/internal/cli/transfer"
	"github.com/dma-copy/dma-copy/internal/cli/verify"
	"github.com/dma-copy/dma-copy/internal/cli/version"
)

// New returns the program with all its commands, in the order of the help.
func New() *root.Program {
	p := &root.Program{Copy: copy.Command(), Version: version.Print}
	p.Commands = []root.Command{
		bench.Command(), bundle.Command(p, doctor.Examine), completion.Command(), config.Command(p), devices.Command(),
		doctor.Command(), keys.Command(), local.Command(), ls.Command(), mkdir.Command(),
		peers.Command(p.Settings), ping.Command(),
		transfer.PullCommand(), transfer.PushCommand(), rm.Command(), serve.Command(), status.Command(),
		transfer.SyncCommand(), verify.Command(), version.Command(),
	}
	p.Hidden = []root.Command{serve.AgentCommand()}
	return p
}
