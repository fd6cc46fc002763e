package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// verdict is the outcome of one check.
type verdict int

const (
	verdictOK   verdict = iota
	verdictWarn         // a copy may work, but not as expected
	verdictFail         // a copy cannot work
)

// String returns the word that starts the line.
func (v verdict) String() string { return [...]string{"ok", "warn", "FAIL"}[v] }

// finding is the result of one check, printed as one line.
type finding struct {
	verdict verdict
	what    string
	fix     string // the next step; empty if there is none
	code    int    // the exit code of a verdictFail
}

func ok(format string, args ...any) finding { return finding{what: fmt.Sprintf(format, args...)} }

func warn(fix, format string, args ...any) finding {
	return finding{verdict: verdictWarn, what: fmt.Sprintf(format, args...), fix: fix}
}

func fail(fix, format string, args ...any) finding {
	return finding{verdict: verdictFail, what: fmt.Sprintf(format, args...), fix: fix, code: exit.Device}
}

// exitingWith returns the finding with another exit code than that of a missing device.
func (f finding) exitingWith(code int) finding {
	f.code = code
	return f
}

// writeFindings prints the findings and returns an error if some failed.
func writeFindings(w io.Writer, findings []finding, s config.Doctor) error {
	failed, code := 0, exit.OK // code is that of the first check that failed
	shown := findings
	if s.Quiet {
		shown = nil
	}
	for _, f := range findings {
		if f.verdict != verdictFail {
			continue
		}
		if failed++; failed == 1 {
			code = f.code
		}
		if s.Quiet {
			shown = append(shown, f)
		}
	}
	if err := writeShown(w, shown, code, s.Output); err != nil {
		return fmt.Errorf("print the findings: %w", err)
	}
	if failed > 0 {
		return exit.Errorf(code, "", "%d of %d checks failed: see the lines with FAIL", failed, len(findings))
	}
	return nil
}

// writeShown prints findings as text or JSON. code is the exit code.
func writeShown(w io.Writer, findings []finding, code int, form config.OutputForm) error {
	if form == config.OutputJSON {
		return writeJSON(w, findings, code)
	}
	var text strings.Builder
	for _, f := range findings {
		writeFinding(&text, f)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// printable returns a text in one line.
func printable(text string) string { return quote.Printable(strings.ReplaceAll(text, "\n", "; ")) }

func writeFinding(text *strings.Builder, f finding) {
	line := fmt.Sprintf("%-4s  %s", f.verdict, f.what)
	if f.fix != "" {
		line += "  -- " + f.fix
	}
	text.WriteString(printable(line) + "\n")
}
