package main

import (
	"time"

	"github.com/rs/zerolog"
)

// newLogger returns the program's logger, always on stderr: readable lines on a terminal, JSON lines elsewhere.
func newLogger(streams streams, level logLevel) zerolog.Logger {
	out := streams.stderr
	if streams.terminal {
		_, plain := streams.env.variable("NO_COLOR")
		out = zerolog.ConsoleWriter{Out: streams.stderr, NoColor: plain, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(out).Level(zerologLevel(level)).With().Timestamp().Logger()
}

// zerologLevel maps DOCA's scale to zerolog's. CRITICAL becomes fatal as a threshold only: log it with
// WithLevel(zerolog.FatalLevel), because Fatal() would end the process.
func zerologLevel(level logLevel) zerolog.Level {
	switch level {
	case levelDisable:
		return zerolog.Disabled
	case levelCritical:
		return zerolog.FatalLevel
	case levelError:
		return zerolog.ErrorLevel
	case levelInfo:
		return zerolog.InfoLevel
	case levelDebug:
		return zerolog.DebugLevel
	case levelTrace:
		return zerolog.TraceLevel
	default:
		return zerolog.WarnLevel
	}
}
