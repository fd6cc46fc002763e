package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// verdict is the outcome of one check.
type verdict string

const (
	verdictOK   verdict = "ok"
	verdictWarn verdict = "warn" // a copy may work, but not as expected
	verdictFail verdict = "FAIL" // a copy cannot work
)

// MarshalText implements encoding.TextMarshaler.
func (v verdict) MarshalText() ([]byte, error) { return []byte(strings.ToLower(string(v))), nil }

// finding is the result of one check, printed as one line. Its text may have names that come from the machine;
// unprintable characters are escaped.
type finding struct {
	Verdict verdict `json:"verdict"`
	What    string  `json:"what"`
	Fix     string  `json:"fix,omitempty"`  // the next step; empty if there is none
	Code    int     `json:"code,omitempty"` // the exit code of a verdictFail
}

func ok(format string, args ...any) finding { return newFinding(verdictOK, "", format, args...) }

func warn(fix, format string, args ...any) finding {
	return newFinding(verdictWarn, fix, format, args...)
}

func fail(fix, format string, args ...any) finding {
	return newFinding(verdictFail, fix, format, args...).exitingWith(exit.Device)
}

func newFinding(v verdict, fix, format string, args ...any) finding {
	return finding{Verdict: v, What: printable(fmt.Sprintf(format, args...)), Fix: printable(fix)}
}

// printable returns a text in one line.
func printable(text string) string { return quote.Printable(strings.ReplaceAll(text, "\n", "; ")) }

// exitingWith returns the finding with another exit code than that of a missing device.
func (f finding) exitingWith(code int) finding {
	f.Code = code
	return f
}

// String returns the line of the finding.
func (f finding) String() string {
	line := fmt.Sprintf("%-4s  %s", f.Verdict, f.What)
	if f.Fix != "" {
		line += "  -- " + f.Fix
	}
	return line
}

// document is the output of doctor -o json, described by docs/doctor.schema.json. Fields are only ever added.
type document struct {
	Version  int       `json:"v"`    // changes only if a field is removed or changes its meaning
	Code     int       `json:"code"` // the exit code
	Findings []finding `json:"findings"`
}

// writeFindings prints the findings and returns an error if some failed.
func writeFindings(w io.Writer, findings []finding, s config.Doctor) error {
	var failed []finding
	for _, f := range findings {
		if f.Verdict == verdictFail {
			failed = append(failed, f)
		}
	}
	code, shown := exit.OK, findings
	if len(failed) > 0 {
		code = failed[0].Code
	}
	if s.Quiet {
		shown = failed
	}
	if err := writeShown(w, shown, code, s.Output); err != nil {
		return fmt.Errorf("print the findings: %w", err)
	}
	if len(failed) > 0 {
		return exit.Errorf(code, "", "%d of %d checks failed: see the lines with FAIL", len(failed), len(findings))
	}
	return nil
}

// writeShown prints findings as text or JSON. code is the exit code.
func writeShown(w io.Writer, findings []finding, code int, form config.OutputForm) error {
	if form == config.OutputJSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(document{1, code, append([]finding{}, findings...)})
	}
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintln(&text, f)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
