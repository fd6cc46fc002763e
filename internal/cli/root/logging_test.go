package root

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
)

var logged = []zerolog.Level{
	zerolog.FatalLevel, zerolog.ErrorLevel, zerolog.WarnLevel, zerolog.InfoLevel, zerolog.DebugLevel,
	zerolog.TraceLevel,
}

// logAtAllLevels returns what arrives on stderr of one message per level.
func logAtAllLevels(s option.Logging, terminal bool, variables map[string]string) string {
	var stderr bytes.Buffer
	log := newLogger(Streams{Stderr: &stderr, Terminal: terminal, Env: func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}}, s)
	for _, severity := range logged {
		log.WithLevel(severity).Msg("copied")
	}
	return stderr.String()
}

func TestLevelsFollowDOCA(t *testing.T) {
	lines := map[option.Level]int{10: 0, 20: 1, 30: 2, 40: 3, 50: 4, 60: 5, 70: 6}
	for level, want := range lines {
		got := strings.Count(logAtAllLevels(option.Logging{LogLevel: level}, false, nil), "\n")
		if got != want {
			t.Errorf("%v lets %d of the %d messages through, want %d", level, got, len(logged), want)
		}
	}
}

func TestLogFormat(t *testing.T) {
	cases := []struct {
		name           string
		format         option.LogFormat
		terminal       bool
		variables      map[string]string
		json, coloured bool
	}{
		{"terminal", "auto", true, nil, false, true},
		{"terminal without colour", "auto", true, map[string]string{"NO_COLOR": "1"}, false, false},
		{"terminal with empty NO_COLOR", "auto", true, map[string]string{"NO_COLOR": ""}, false, true},
		{"file", "auto", false, nil, true, false},
		{"text in a file", "text", false, nil, false, false},
		{"text on a terminal", "text", true, nil, false, true},
		{"json on a terminal", "json", true, nil, true, false},
		{"before the settings are known", "", false, nil, true, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := option.Logging{LogLevel: option.LevelError, LogFormat: tc.format}
			out := logAtAllLevels(s, tc.terminal, tc.variables)
			if got := strings.HasPrefix(out, "{"); got != tc.json {
				t.Errorf("JSON %t, want %t: %q", got, tc.json, out)
			}
			if got := strings.Contains(out, "\x1b["); got != tc.coloured {
				t.Errorf("coloured %t, want %t: %q", got, tc.coloured, out)
			}
		})
	}
}

// Text of a peer in a field or a message neither begins a line nor controls a terminal, regardless of the format.
func TestPeerTextInTheLog(t *testing.T) {
	const hostile = "a\nERR forged \x1b[2J\r\u009b2J\u202e"
	for _, format := range []option.LogFormat{option.LogText, option.LogJSON} {
		var stderr bytes.Buffer
		log := newLogger(Streams{Stderr: &stderr}, option.Logging{LogLevel: option.LevelError, LogFormat: format})
		log.Error().Str("path", hostile).Strs("names", []string{hostile}).Err(errors.New(hostile)).Msg(hostile)
		if out := stderr.String(); strings.Count(out, "\n") != 1 || strings.ContainsAny(out, "\x1b\r\u009b\u202e") {
			t.Errorf("%s: %q", format, out)
		}
	}
}

func TestLevelNames(t *testing.T) {
	names := map[option.Level]string{10: "DISABLE", 40: "WARNING", 70: "TRACE", 45: "logLevel(45)", 0: "logLevel(0)"}
	for level, name := range names {
		if got := level.String(); got != name {
			t.Errorf("level %d is %q, want %q", int(level), got, name)
		}
	}
}
