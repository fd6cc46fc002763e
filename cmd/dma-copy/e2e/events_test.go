package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// eventsSchema returns the schema of docs/, which is part of the interface.
var eventsSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile(moduleRoot + "/docs/events.schema.json")
})

// isEvent distinguishes an event from other lines, such as those of the log.
func isEvent(line string) bool { return strings.HasPrefix(line, `{"v":`) }

// checkEvents validates the events that a process has printed. The last one has to be of the kind that the exit code
// asks for.
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
		if last == "error" || last == "summary" {
			return fmt.Errorf("%s follows the %s", kind, last)
		}
		last = kind
	}
	want := "error"
	if code == exitOK {
		want = "summary"
	}
	if last != "" && last != want && code != exitKilled {
		return fmt.Errorf("the last event is %s, want %s", last, want)
	}
	return nil
}

// checkEvent validates one event. It also requires every field to be described; the schema itself allows others, since
// later releases may add fields.
func checkEvent(line string) (kind string, err error) {
	compiled, err := eventsSchema()
	if err != nil {
		return "", err
	}
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		return "", err
	}
	if err := compiled.Validate(instance); err != nil {
		return "", err
	}
	fields := instance.(map[string]any)
	kind = fields["type"].(string)
	described := compiled.OneOf[slices.Index(eventKinds, kind)].Ref.Properties
	for name := range fields {
		if described[name] == nil && compiled.Properties[name] == nil {
			return kind, fmt.Errorf("%s is not in the schema", name)
		}
	}
	return kind, nil
}

// eventKinds are the types of events in the order of the schema.
var eventKinds = []string{"hello", "plan", "progress", "file", "retry", "warning", "error", "summary"}
