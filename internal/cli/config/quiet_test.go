package config

import "testing"

// Without a level of its own, a quiet command logs errors only.
func TestQuietLogsErrorsOnly(t *testing.T) {
	cases := []struct {
		name, line   string
		variables    map[string]string
		program, sdk Level
	}{
		{"not quiet", "-f x", nil, levelWarning, levelWarning},
		{"long", "-f x --quiet", nil, LevelError, LevelError},
		{"short", "-f x -q", nil, LevelError, LevelError},
		{"environment", "-f x", map[string]string{"DMA_COPY_QUIET": "1"}, LevelError, LevelError},
		{"revoked", "-f x -q=false", map[string]string{"DMA_COPY_QUIET": "1"}, levelWarning, levelWarning},
		{"level given", "-f x -q -l WARNING", nil, levelWarning, LevelError},
		{"level of the environment", "-f x -q", map[string]string{"DMA_COPY_SDK_LOG_LEVEL": "50"},
			LevelError, LevelInfo},
	}
	for _, tc := range cases {
		s := mustLoad(t, tc.variables, words(tc.line)...)
		if s.LogLevel != tc.program || s.Driver.LogLevel != tc.sdk {
			t.Errorf("%s: levels %v and %v, want %v and %v", tc.name, s.LogLevel, s.Driver.LogLevel, tc.program, tc.sdk)
		}
	}
	for _, s := range []Settings{&Verify{}, &Doctor{}, &Ping{}, &Serve{}, &Keys{}, &Transfer{}, &Local{}} {
		if err := load(s, nil, "-q"); err != nil || s.Log().LogLevel != LevelError {
			t.Errorf("%T: error %v, level %v", s, err, s.Log().LogLevel)
		}
	}
}
