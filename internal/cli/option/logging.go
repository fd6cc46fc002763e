package option

import "fmt"

// Logging holds how a command logs on stderr.
type Logging struct {
	LogLevel  Level
	LogFormat LogFormat
}

// Log implements Settings.
func (s *Logging) Log() *Logging { return s }

// The names of the options of the log. The default levels depend on --quiet.
const (
	logLevelName    = "log-level"
	SDKLogLevelName = "sdk-log-level"
	quietName       = "quiet"
)

const levelHelp = "10=DISABLE, 20=CRITICAL, 30=ERROR, 40=WARNING, 50=INFO, 60=DEBUG, 70=TRACE"

// LogOptions returns the options of the log, which every command has.
func (s *Logging) LogOptions() []Option { return []Option{s.LevelOption(), s.FormatOption()} }

// LevelOption is the level of the program's own log.
func (s *Logging) LevelOption() Option {
	return Option{
		Group: DOCAFlags, Topic: TopicOutput, Name: logLevelName, Short: "l", Value: "LEVEL", Default: "40",
		JSON: JSONNumber, Words: LevelNames[:], Assign: Into(&s.LogLevel, ParseLevel),
		Help: "Log level of the program, by number or name: " + levelHelp,
	}
}

// FormatOption is the format of the log.
func (s *Logging) FormatOption() Option {
	return Choice(AddedFlags, "log-format", &s.LogFormat, logAuto,
		"Log on stderr as lines of text or of JSON; auto is text on a terminal, else json",
		logAuto, LogText, LogJSON).In(TopicOutput)
}

// LogFormat is the format of the log on stderr.
type LogFormat string

const (
	logAuto LogFormat = "auto" // text on a terminal, otherwise JSON
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Level is a log level on DOCA's scale, 10 to 70 in steps of ten.
type Level int

const (
	LevelDisable  Level = 10
	LevelCritical Level = 20
	LevelError    Level = 30
	LevelWarning  Level = 40
	LevelInfo     Level = 50
	LevelDebug    Level = 60
	LevelTrace    Level = 70
)

// LevelNames holds the names in order: the level of entry i is 10*(i+1).
var LevelNames = [...]string{"DISABLE", "CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG", "TRACE"}

// String returns DOCA's name of the level.
func (l Level) String() string {
	if l < LevelDisable || l > LevelTrace || l%10 != 0 {
		return fmt.Sprintf("logLevel(%d)", int(l))
	}
	return LevelNames[l/10-1]
}
