package root

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// prepare fills in the settings of a command and returns its logger. With an error the settings hold those values that
// are valid.
func (p *Program) prepare(flags *pflag.FlagSet, streams Streams, s option.Settings) (zerolog.Logger, error) {
	notes, err := p.Settings().Load(flags, streams.Env, s)
	log := newLogger(streams, *s.Log())
	if streams.Environ != nil { // warned of also where the settings are refused: a variable may be the reason
		for _, note := range p.Settings().MistakenVariables(streams.Environ()) {
			log.Warn().Msg(note)
		}
	}
	if limit := checkDescriptors(); limit != nil {
		err = limit // which may be why a parameter file could not be read
	}
	if err != nil {
		return zerolog.Nop(), err
	}
	for _, note := range notes {
		log.Warn().Msg(note)
	}
	return log, nil
}

// minDescriptors is the number of free file descriptors that a copy needs, with some to spare: a DPU that receives
// opens about 30.
const minDescriptors = 48

// checkDescriptors returns an error if this process cannot open as many files as a copy needs. Later, their lack would
// look like an absent peer or a failing device, or stop Go's runtime.
func checkDescriptors() error {
	for free := range minDescriptors {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // a new file, which the limit of the system concerns, too
		if err != nil {
			return tooFewDescriptors(free, err)
		}
		defer func() { _ = unix.Close(fd) }()
	}
	return nil
}

func tooFewDescriptors(free int, err error) error {
	hint := exit.HintProcessFiles
	if errors.Is(err, unix.ENFILE) {
		hint = exit.HintSystemFiles
	}
	return exit.Errorf(exit.Usage, hint, "cannot open enough files: %d of %d file descriptors are free (%w)",
		free, minDescriptors, err)
}

// newLogger returns the program's logger, always on stderr. Lines of text are readable on a terminal, where they have
// colours, and elsewhere, where they have the date, too.
func newLogger(streams Streams, s option.Logging) zerolog.Logger {
	out := io.Writer(quote.JSONWriter{To: streams.Stderr})
	if s.LogFormat == option.LogText || s.LogFormat != option.LogJSON && streams.Terminal {
		out = newTextLog(streams)
	}
	return zerolog.New(out).Level(zerologLevel(s.LogLevel)).With().Timestamp().Logger()
}

func newTextLog(streams Streams) zerolog.ConsoleWriter {
	text := zerolog.ConsoleWriter{
		Out: streams.Stderr, NoColor: true, TimeFormat: time.RFC3339,
		FormatFieldValue: func(value any) string { return quote.Printable(fmt.Sprintf("%s", value)) }, // lists are JSON
		FormatPrepare:    escapeMessage,
	}
	if streams.Terminal {
		_, plain := streams.Env.Variable("NO_COLOR")
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
func zerologLevel(level option.Level) zerolog.Level {
	scale := [...]zerolog.Level{
		zerolog.Disabled, zerolog.FatalLevel, zerolog.ErrorLevel, zerolog.WarnLevel, zerolog.InfoLevel,
		zerolog.DebugLevel, zerolog.TraceLevel,
	}
	if level < option.LevelDisable {
		return zerolog.WarnLevel // the settings were refused
	}
	return scale[(level-option.LevelDisable)/10]
}
