package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
)

var logged = []zerolog.Level{
	zerolog.FatalLevel, zerolog.ErrorLevel, zerolog.WarnLevel, zerolog.InfoLevel, zerolog.DebugLevel,
	zerolog.TraceLevel,
}

// logAtAllLevels returns what arrives on stderr of one message per level.
func logAtAllLevels(level config.Level, terminal bool, variables map[string]string) string {
	var stderr bytes.Buffer
	log := newLogger(streams{stderr: &stderr, terminal: terminal, env: func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}}, level)
	for _, severity := range logged {
		log.WithLevel(severity).Msg("copied")
	}
	return stderr.String()
}

func TestLevelsFollowDOCA(t *testing.T) {
	lines := map[config.Level]int{10: 0, 20: 1, 30: 2, 40: 3, 50: 4, 60: 5, 70: 6}
	for level, want := range lines {
		got := strings.Count(logAtAllLevels(level, false, nil), "\n")
		if got != want {
			t.Errorf("%v lets %d of the %d messages through, want %d", level, got, len(logged), want)
		}
	}
}

func TestLogFormat(t *testing.T) {
	cases := []struct {
		name           string
		terminal       bool
		variables      map[string]string
		json, coloured bool
	}{
		{"terminal", true, nil, false, true},
		{"terminal without colour", true, map[string]string{"NO_COLOR": "1"}, false, false},
		{"terminal with empty NO_COLOR", true, map[string]string{"NO_COLOR": ""}, false, true},
		{"file", false, nil, true, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			out := logAtAllLevels(config.LevelError, tc.terminal, tc.variables)
			if got := strings.HasPrefix(out, "{"); got != tc.json {
				t.Errorf("JSON %t, want %t: %q", got, tc.json, out)
			}
			if got := strings.Contains(out, "\x1b["); got != tc.coloured {
				t.Errorf("coloured %t, want %t: %q", got, tc.coloured, out)
			}
		})
	}
}

func TestLevelNames(t *testing.T) {
	names := map[config.Level]string{10: "DISABLE", 40: "WARNING", 70: "TRACE", 45: "logLevel(45)", 0: "logLevel(0)"}
	for level, name := range names {
		if got := level.String(); got != name {
			t.Errorf("level %d is %q, want %q", int(level), got, name)
		}
	}
}
