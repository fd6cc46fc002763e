package main

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
)

// newLogger returns the program's logger, always on stderr: readable lines on a terminal, JSON lines elsewhere.
func newLogger(streams streams, level config.Level) zerolog.Logger {
	out := streams.stderr
	if streams.terminal {
		_, plain := streams.env.Variable("NO_COLOR")
		out = zerolog.ConsoleWriter{Out: streams.stderr, NoColor: plain, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(out).Level(zerologLevel(level)).With().Timestamp().Logger()
}

// zerologLevel maps DOCA's scale to zerolog's. CRITICAL becomes fatal as a threshold only: log it with
// WithLevel(zerolog.FatalLevel), because Fatal() would end the process.
func zerologLevel(level config.Level) zerolog.Level {
	switch level {
	case config.LevelDisable:
		return zerolog.Disabled
	case config.LevelCritical:
		return zerolog.FatalLevel
	case config.LevelError:
		return zerolog.ErrorLevel
	case config.LevelInfo:
		return zerolog.InfoLevel
	case config.LevelDebug:
		return zerolog.DebugLevel
	case config.LevelTrace:
		return zerolog.TraceLevel
	default:
		return zerolog.WarnLevel
	}
}
