package e2e

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// benchSchema returns the schema of docs/, which is part of the interface.
var benchSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile(moduleRoot + "/docs/bench.schema.json")
})

// recordCommand: record FILE validates a record of bench against the schema, which allows no field that it does not
// describe.
func recordCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 1, "record FILE")
	compiled, err := benchSchema()
	ts.Check(err)
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(compiled.Validate(instance))
}

// drawingCommand: drawing FILE expects a drawing to be well-formed XML with at least one line.
func drawingCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 1, "drawing FILE")
	decoder, lines := xml.NewDecoder(strings.NewReader(ts.ReadFile(args[0]))), 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		if element, is := token.(xml.StartElement); is && element.Name.Local == "polyline" {
			lines++
		}
	}
	if lines == 0 {
		ts.Fatalf("%s has no line", args[0])
	}
}

// emptydirCommand: emptydir DIR expects a directory to be empty.
func emptydirCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 1, "emptydir DIR")
	files, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) > 0 {
		ts.Fatalf("%s contains %s", args[0], files[0].Name())
	}
}
