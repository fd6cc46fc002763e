package config

// Status holds the settings of status.
type Status struct {
	Logging
	Output     OutputForm
	Socket     string // empty: the default one
	RuntimeDir string // of the daemon; empty: the default one
}

// options implements Settings.
func (s *Status) options() []option {
	return append(s.logOptions(),
		jsonOption(),
		socketOption(&s.Socket, "Socket of the daemon; default status.sock in its runtime directory"),
		runtimeDirOption(&s.RuntimeDir, "Runtime directory of the daemon; default that "+
			"of this user, then /run/dma-copy"),
		outputOption(&s.Output, "Result as text, or as one JSON line, on stdout"),
	)
}
