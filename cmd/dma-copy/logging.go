package main

import (
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// newLogger returns the program's logger, always on stderr. Lines of text are readable on a terminal, where they have
// colours, and elsewhere, where they have the date, too.
func newLogger(streams streams, s config.Logging) zerolog.Logger {
	out := io.Writer(quote.JSONWriter{To: streams.stderr})
	if s.LogFormat == config.LogText || s.LogFormat != config.LogJSON && streams.terminal {
		out = newTextLog(streams)
	}
	return zerolog.New(out).Level(zerologLevel(s.LogLevel)).With().Timestamp().Logger()
}

func newTextLog(streams streams) zerolog.ConsoleWriter {
	text := zerolog.ConsoleWriter{
		Out: streams.stderr, NoColor: true, TimeFormat: time.RFC3339,
		FormatFieldValue: func(value any) string { return quote.Printable(fmt.Sprintf("%s", value)) }, // lists are JSON
		FormatPrepare:    escapeMessage,
	}
	if streams.terminal {
		_, plain := streams.env.Variable("NO_COLOR")
		text.NoColor, text.TimeFormat = plain, time.TimeOnly
	}
	return text
}

// escapeMessage keeps a message on its line: warnings quote names of files.
func escapeMessage(event map[string]any) error {
	if message, is := event[zerolog.MessageFieldName].(string); is {
		event[zerolog.MessageFieldName] = quote.Printable(message)
	}
	return nil
}

// zerologLevel maps DOCA's scale to zerolog's. CRITICAL becomes fatal as a threshold only: log it with
// WithLevel(zerolog.FatalLevel), because Fatal() would end the process.
func zerologLevel(level config.Level) zerolog.Level {
	scale := [...]zerolog.Level{
		zerolog.Disabled, zerolog.FatalLevel, zerolog.ErrorLevel, zerolog.WarnLevel, zerolog.InfoLevel,
		zerolog.DebugLevel, zerolog.TraceLevel,
	}
	if level < config.LevelDisable {
		return zerolog.WarnLevel // the settings were refused
	}
	return scale[(level-config.LevelDisable)/10]
}
