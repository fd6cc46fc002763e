package main

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/doctor"
)

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
`,
		examples: `host$ dma-copy doctor -p b1:00.1 --peer
dpu$  dma-copy doctor -p 03:00.1 -r b1:00.1 --require-hw
lab$  dma-copy doctor --listen :7483
`,
		settings: &s,
		run: func(_ context.Context, streams streams, _ []string, _ zerolog.Logger) error {
			return doctor.Run(streams.stdout, s)
		},
	}
}
