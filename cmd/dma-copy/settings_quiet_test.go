package main

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/doctor"
	"github.com/dma-copy/dma-copy/internal/cli/keys"
	"github.com/dma-copy/dma-copy/internal/cli/local"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/ping"
	"github.com/dma-copy/dma-copy/internal/cli/serve"
	"github.com/dma-copy/dma-copy/internal/cli/transfer"
	"github.com/dma-copy/dma-copy/internal/cli/verify"
)

// Without a level of its own, a quiet command logs errors only.
func TestQuietLogsErrorsOnly(t *testing.T) {
	cases := []struct {
		name, line   string
		variables    map[string]string
		program, sdk option.Level
	}{
		{"not quiet", "-f x", nil, option.LevelWarning, option.LevelWarning},
		{"long", "-f x --quiet", nil, option.LevelError, option.LevelError},
		{"short", "-f x -q", nil, option.LevelError, option.LevelError},
		{"environment", "-f x", map[string]string{"DMA_COPY_QUIET": "1"}, option.LevelError, option.LevelError},
		{"revoked", "-f x -q=false", map[string]string{"DMA_COPY_QUIET": "1"}, option.LevelWarning,
			option.LevelWarning},
		{"level given", "-f x -q -l WARNING", nil, option.LevelWarning, option.LevelError},
		{"level of the environment", "-f x -q", map[string]string{"DMA_COPY_SDK_LOG_LEVEL": "50"},
			option.LevelError, option.LevelInfo},
	}
	for _, tc := range cases {
		s := mustLoad(t, tc.variables, words(tc.line)...)
		if s.LogLevel != tc.program || s.Driver.LogLevel != tc.sdk {
			t.Errorf("%s: levels %v and %v, want %v and %v", tc.name, s.LogLevel, s.Driver.LogLevel, tc.program, tc.sdk)
		}
	}
	for _, s := range []option.Settings{&verify.Settings{}, &doctor.Settings{}, &ping.Settings{}, &serve.Settings{},
		&keys.Settings{}, &transfer.Settings{}, &local.Settings{}} {
		if err := load(s, nil, "-q"); err != nil || s.Log().LogLevel != option.LevelError {
			t.Errorf("%T: error %v, level %v", s, err, s.Log().LogLevel)
		}
	}
}
