package e2e

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// benchSchema is the shipped one.
var benchSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile("../../../docs/bench.schema.json")
})

// recordCommand: record FILE holds what bench has written to the schema, which allows no field that it does not describe.
func recordCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 1, "record FILE")
	compiled, err := benchSchema()
	ts.Check(err)
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(compiled.Validate(instance))
}

// drawingCommand: drawing FILE wants well-formed XML with lines in it.
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
		ts.Fatalf("%s shows nothing", args[0])
	}
}

// emptydirCommand: emptydir DIR wants nothing in a folder.
func emptydirCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 1, "emptydir DIR")
	left, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, entry := range left {
		ts.Fatalf("%s holds %s", args[0], filepath.Base(entry.Name()))
	}
}
