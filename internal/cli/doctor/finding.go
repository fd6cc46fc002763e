package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/probe"
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

// exitingWith returns the finding with another exit code than the code of a missing device.
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
	Version  int            `json:"v"`    // changes only if a field is removed or changes its meaning
	Code     int            `json:"code"` // the exit code
	Findings []finding      `json:"findings"`
	Probes   []probe.Result `json:"probes,omitempty"` // with --probe
}

// writeFindings prints findings and results of probes. It returns an error if some failed or differ, otherwise failure,
// the error of the probes.
func writeFindings(w io.Writer, findings []finding, probes []probe.Result, failure error, s Settings) error {
	failed := selectOnly(findings, func(f finding) bool { return f.Verdict == verdictFail })
	differing := selectOnly(probes, func(r probe.Result) bool { return r.Verdict == probe.Differs })
	switch {
	case len(failed) > 0:
		failure = exit.Errorf(failed[0].Code, "", "%d of %d checks failed: see the lines with FAIL", len(failed),
			len(findings))
	case len(differing) > 0:
		failure = exit.Errorf(exit.Device, "",
			"the device is not as assumed in %d of %d probes: see the lines with differs", len(differing),
			len(probes))
	}
	shown := document{1, exit.Code(failure), append([]finding{}, findings...), probes}
	if s.Quiet {
		shown.Findings, shown.Probes = append([]finding{}, failed...), differing
	}
	if err := output.Print(w, s.Output, "findings", shown, shown.text()); err != nil {
		return err
	}
	return failure
}

// selectOnly returns the elements that are wanted.
func selectOnly[T any](all []T, wanted func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !wanted(one) })
}

func (d document) text() string {
	var text strings.Builder
	for _, f := range d.Findings {
		fmt.Fprintln(&text, f)
	}
	for _, r := range d.Probes {
		fmt.Fprintln(&text, probeLine(r))
	}
	return text.String()
}

// probeLine returns the line of a probe, which has all that a report of a difference needs.
func probeLine(r probe.Result) string {
	line := fmt.Sprintf("%-18s  %s: %s", r.Verdict, r.Name, r.Found)
	if r.Verdict == probe.Differs {
		line += fmt.Sprintf("; assumed: %s (%s)  -- %s", r.Assumption, r.Source, r.Means)
	}
	return line
}
