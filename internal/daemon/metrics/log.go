package metrics

import (
	"log"
	"strings"

	"github.com/rs/zerolog"
)

// logOfLibraries returns Go's global logger, which warns by the given one from now on: the library of the metrics
// reports there what it cannot read.
func logOfLibraries(to zerolog.Logger) *log.Logger {
	global := log.Default()
	global.SetFlags(0)
	global.SetOutput(warner{to})
	return global
}

// warner warns of each message that is written to it.
type warner struct{ log zerolog.Logger }

// Write implements io.Writer.
func (w warner) Write(message []byte) (int, error) {
	w.log.Warn().Msg(strings.TrimSuffix(string(message), "\n"))
	return len(message), nil
}
