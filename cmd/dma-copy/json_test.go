package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// docs is the directory of the schemas, also after a test has changed the working directory.
var docs, docsError = filepath.Abs("../../docs")

// checkDocument validates a JSON document against a schema of docs/, which must also describe every field: the schema
// itself allows others, because later releases may add fields.
func checkDocument(t *testing.T, schemaName, text string) map[string]any {
	t.Helper()
	must(t, docsError)
	file := filepath.Join(docs, schemaName)
	schema, err := jsonschema.NewCompiler().Compile(file)
	must(t, err)
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if err := schema.Validate(instance); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	content, err := os.ReadFile(file)
	must(t, err)
	var of any
	must(t, json.Unmarshal(content, &of))
	for _, name := range fieldsOf(instance) {
		if !slices.Contains(propertiesOf(of), name) {
			t.Errorf("%s does not describe %q of %s", schemaName, name, text)
		}
	}
	return instance.(map[string]any)
}

// fieldsOf returns the names of all members of a document.
func fieldsOf(value any) (names []string) {
	switch of := value.(type) {
	case map[string]any:
		for name, member := range of {
			names = append(append(names, name), fieldsOf(member)...)
		}
	case []any:
		for _, element := range of {
			names = append(names, fieldsOf(element)...)
		}
	}
	return names
}

// propertiesOf returns the names of all properties in a schema.
func propertiesOf(schema any) (names []string) {
	of, _ := schema.(map[string]any)
	for key, member := range of {
		if key == "properties" {
			for name := range member.(map[string]any) {
				names = append(names, name)
			}
		}
		names = append(names, propertiesOf(member)...)
	}
	return names
}

func TestVerifyAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "a", "content")
	writeFile(t, "b", "content")
	writeFile(t, "c", "contend")
	writeFile(t, "\xff", "content")
	writeFile(t, "bad.sums", "xxh3:0000000000000000  a\nxxh3:0000000000000000  absent\n"+
		"xxh3:0000000000000000  /dev/null\n")
	cases := []struct {
		line  string
		code  int
		lines []string // what each contains
	}{
		{"verify -o json a b", 0, []string{`"file":"a","copy":"b","verdict":"ok","digest":"xxh3:`, `"end","code":0}`}},
		{"verify -o json a c", 9, []string{
			`"verdict":"mismatch",.*,"first_difference":6}`, `"code":9,"message":"a and c`,
		}},
		{"verify -o json --write sums a b \xff", 0, []string{
			`"manifest","file":"sums","files":3,"bytes":21}`, `"code":0`,
		}},
		{"verify -o json sums", 0, []string{`"ok"`, `"ok"`, `"file_base64":"/w==","verdict":"ok"`, `"code":0`}},
		{"verify -q -o json sums", 0, []string{`"code":0}`}},
		{"verify -o json --allow-outside bad.sums", 9, []string{
			`"verdict":"mismatch","digest":"xxh3:[0-9a-f]{16}","expected":"xxh3:0{16}"}`, `"missing"}`,
			`"unreadable","message":`, `"code":9`,
		}},
		{"verify -o json --extra sums", 12, []string{`"ok"`, `"ok"`, `"ok"`, `"unlisted"`, `"unlisted"`, `"code":12`}},
		{"verify -o json --write - a", 3, []string{`"end","code":3,"message":"-o json conflicts`}},
		{"verify -o json --frobnicate a", 3, []string{`"end","code":3,"message":"unknown flag`}},
	}
	for _, tc := range cases {
		got := invoke(nil, words(tc.line)...)
		lines := slices.Collect(strings.Lines(got.stdout))
		if exit.Code(got.err) != tc.code || len(lines) != len(tc.lines) {
			t.Errorf("%s: exit code %d, want %d; printed\n%s", tc.line, exit.Code(got.err), tc.code, got.stdout)
			continue
		}
		for i, line := range lines {
			checkDocument(t, "verify.schema.json", line)
			if !regexp.MustCompile(tc.lines[i]).MatchString(line) {
				t.Errorf("%s: line %s, want %s", tc.line, line, tc.lines[i])
			}
		}
	}
}
