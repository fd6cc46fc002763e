package quote

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

// What is written means the same, and none of its characters controls a terminal.
func TestJSONWriter(t *testing.T) {
	const text = "\x1b[31m \x7f \u009b31m \u202e \U000e0001 \ufeff \" \\ <ä日🙂\r\n\t"
	var out bytes.Buffer
	encoder := json.NewEncoder(JSONWriter{&out})
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(map[string]string{text: text}); err != nil {
		t.Fatal(err)
	}
	if printable := bytes.ReplaceAll(out.Bytes(), []byte("\n"), nil); bytes.ContainsFunc(printable, hidden) {
		t.Errorf("%q", out.Bytes())
	}
	var got map[string]string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != 1 || got[text] != text {
		t.Errorf("%q: %q, %v", out.Bytes(), got, err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

func TestJSONWriterFails(t *testing.T) {
	if n, err := (JSONWriter{broken{}}).Write([]byte("1")); n != 0 || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%d, %v", n, err)
	}
}
