package status

import (
	"github.com/dma-copy/dma-copy/internal/cli/option"
)

// Settings holds the settings of status.
type Settings struct {
	option.Logging
	Output     option.OutputForm
	Socket     string // empty: the default one
	RuntimeDir string // of the daemon; empty: the default one
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return append(s.LogOptions(),
		option.ParameterFile(),
		option.File(option.AddedFlags, "socket", "PATH", &s.Socket,
			"Socket of the daemon; default status.sock in its runtime directory"),
		option.Directory(option.ServeFlags, "runtime-dir", &s.RuntimeDir,
			"Runtime directory of the daemon; default that of this user, then /run/dma-copy"),
		option.Output(&s.Output, "Result as text, or as one JSON line, on stdout"),
	)
}
