package config

// Status holds the settings of status.
type Status struct {
	LogLevel   Level
	Output     OutputForm
	Socket     string // empty: the default one
	RuntimeDir string // of the daemon; empty: the default one
}

// Level implements Settings.
func (s *Status) Level() Level { return s.LogLevel }

// options implements Settings.
func (s *Status) options() []option {
	return []option{
		logLevelOption(&s.LogLevel),
		jsonOption(),
		{group: AddedFlags, name: "socket", value: "PATH", json: jsonText,
			assign: into(&s.Socket, parsePath),
			help:   "Socket of the daemon; default status.sock in\nits runtime directory"},
		{group: AddedFlags, name: "runtime-dir", value: "DIR", json: jsonText,
			assign: into(&s.RuntimeDir, parsePath),
			help:   "Runtime directory of the daemon; default that\nof this user, then /run/dma-copy"},
		{group: AddedFlags, name: "output", short: "o", value: "text|json", fallback: string(OutputText),
			json:   jsonText,
			assign: into(&s.Output, parseOneOf(OutputText, OutputJSON)),
			help:   "Result as text, or as one JSON line, on stdout"},
	}
}
