package config

// Completion holds the settings of completion.
type Completion struct {
	LogLevel Level
}

// Level implements Settings.
func (s *Completion) Level() Level { return s.LogLevel }

// options implements Settings.
func (s *Completion) options() []option { return []option{logLevelOption(&s.LogLevel), jsonOption()} }
