package doctor

import (
	"encoding/json"
	"io"
	"strings"
)

// document is the output of doctor -o json, described by docs/doctor.schema.json. Fields are only ever added.
type document struct {
	Version  int               `json:"v"`
	Code     int               `json:"code"` // the exit code
	Findings []documentFinding `json:"findings"`
}

// documentFinding is the result of one check. Its text may have names that come from the machine; unprintable
// characters are escaped.
type documentFinding struct {
	Verdict string `json:"verdict"` // ok, warn or fail
	What    string `json:"what"`
	Fix     string `json:"fix,omitempty"`  // the next step
	Code    int    `json:"code,omitempty"` // the exit code of a fail
}

// documentVersion changes only if a field is removed or changes its meaning.
const documentVersion = 1

func writeJSON(w io.Writer, findings []finding, code int) error {
	d := document{Version: documentVersion, Code: code, Findings: []documentFinding{}}
	for _, f := range findings {
		d.Findings = append(d.Findings, documentFinding{
			Verdict: strings.ToLower(f.verdict.String()), What: printable(f.what), Fix: printable(f.fix), Code: f.code,
		})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(d)
}
