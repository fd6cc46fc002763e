// Package reporttest checks the JSON events of a copy against docs/events.schema.json. It is for tests only.
package reporttest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// EventKinds are the types of events, in the order of the schema: events of copies, of ls, of changes and of a ping.
var EventKinds = []string{
	"waiting", "hello", "plan", "progress", "file", "retry", "warning", "error", "summary", "total", "deleting", "peer",
	"peers", "entry", "change", "text", "ping",
}

// CheckEvent validates an event and returns its type. It also requires the schema to describe every field: the schema
// itself allows others, because later releases may add fields.
type CheckEvent func(event string) (kind string, err error)

// EventChecker returns the check of events for a schema file. The path is relative to the working directory of this
// call; the file is read by the first check.
func EventChecker(schemaFile string) CheckEvent {
	path, pathErr := filepath.Abs(schemaFile)
	schema := sync.OnceValues(func() (*jsonschema.Schema, error) {
		if pathErr != nil {
			return nil, pathErr
		}
		return jsonschema.NewCompiler().Compile(path)
	})
	return func(event string) (string, error) {
		compiled, err := schema()
		if err != nil {
			return "", err
		}
		return checkEvent(compiled, event)
	}
}

func checkEvent(schema *jsonschema.Schema, event string) (kind string, err error) {
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(event))
	if err != nil {
		return "", err
	}
	if err := schema.Validate(instance); err != nil {
		return "", err
	}
	fields := instance.(map[string]any)
	kind = fields["type"].(string)
	described := schema.OneOf[slices.Index(EventKinds, kind)].Ref.Properties
	for name := range fields {
		if described[name] == nil && schema.Properties[name] == nil {
			return kind, fmt.Errorf("%s is not in the schema", name)
		}
	}
	return kind, nil
}

// aTime matches the time of an event.
var aTime = regexp.MustCompile(`"time":"[^"]+"`)

// CheckGolden validates events, one a line, and compares them with a golden file, in which their times are empty. With
// DMA_COPY_UPDATE_GOLDEN in the environment it writes the file.
func CheckGolden(schemaFile, golden, events string) error {
	check := EventChecker(schemaFile)
	for event := range strings.Lines(events) {
		if _, err := check(event); err != nil {
			return fmt.Errorf("%s: %w", event, err)
		}
	}
	events = aTime.ReplaceAllString(events, `"time":""`)
	if os.Getenv("DMA_COPY_UPDATE_GOLDEN") != "" {
		return os.WriteFile(golden, []byte(events), 0o644)
	}
	want, err := os.ReadFile(golden)
	if err == nil && string(want) != events {
		err = fmt.Errorf("the events differ from %s:\n%s", golden, events)
	}
	return err
}

// CompareGolden fails the test if text differs from a golden file, which update rewrites.
func CompareGolden(t *testing.T, golden, text string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("differs from %s (accept it with go test -update):\n%s", golden, text)
	}
}
