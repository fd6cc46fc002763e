package e2e

import (
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/report/reporttest"
)

// checkEvent validates one event and returns its type.
var checkEvent = reporttest.EventChecker(moduleRoot + "/docs/events.schema.json")

// isEvent distinguishes an event from other lines, such as those of the log.
func isEvent(line string) bool { return strings.HasPrefix(line, `{"v":1,"type":`) }

// checkEvents validates the events that a process has printed. The last one has to be of the kind that the exit code
// asks for; a summary comes before an error only if some entries of a tree have failed, and peers always.
func checkEvents(printed string, code int) error {
	var last string
	for line := range strings.Lines(printed) {
		if !isEvent(line) {
			continue
		}
		kind, err := checkEvent(line)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		partly := kind == "error" && (code == exitSomeFailed && last == "summary" || last == "peers")
		if (last == "error" || isResult(last)) && !partly {
			return fmt.Errorf("%s follows the %s", kind, last)
		}
		last = kind
	}
	if last != "" && isResult(last) != (code == exitOK) && code != exitKilled {
		return fmt.Errorf("the last event is %s, and the exit code %d", last, code)
	}
	return nil
}

// isResult reports whether events of this kind end a run that succeeds.
func isResult(kind string) bool { return kind == "summary" || kind == "ping" || kind == "peers" }
