package e2e

import (
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
