package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// eventsSchema is absolute, because tests change the directory.
var eventsSchema, _ = filepath.Abs("../../../docs/events.schema.json")

// schema is the shipped one.
var schema = sync.OnceValues(func() (*jsonschema.Schema, error) { return jsonschema.NewCompiler().Compile(eventsSchema) })

// isEvent tells an event from other lines, such as those of the log.
func isEvent(line string) bool { return strings.HasPrefix(line, `{"v":`) }

// checkEvents holds what a process has printed to the schema: every event is as it says, and the last one tells how it ended.
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
	wanted := map[bool]string{true: "summary", false: "error"}[code == 0]
	if killed := code == 128+int(syscall.SIGKILL); last != "" && last != wanted && !killed {
		return fmt.Errorf("the last event is %s, not %s", last, wanted)
	}
	return nil
}

// checkEvent also wants every field to be in the schema, which itself allows more.
func checkEvent(line string) (kind string, err error) {
	compiled, err := schema()
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

// eventKinds are in the order of the schema.
var eventKinds = []string{"hello", "plan", "progress", "file", "retry", "warning", "error", "summary"}
