package config

// General holds the settings of commands that have no others.
type General struct {
	Logging
}

// options implements Settings.
func (s *General) options() []option { return append(s.logOptions(), jsonOption()) }
