package config

// Completion holds the settings of completion.
type Completion struct {
	Logging
}

// options implements Settings.
func (s *Completion) options() []option { return append(s.logOptions(), jsonOption()) }
