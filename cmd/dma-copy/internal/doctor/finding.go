package doctor

import (
	"fmt"
	"io"
	"strings"

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
func writeFindings(w io.Writer, findings []finding) error {
	failed, code := 0, exit.OK // code is that of the first check that failed
	var text strings.Builder
	for _, f := range findings {
		writeFinding(&text, f)
		if f.verdict == verdictFail {
			failed++
			if failed == 1 {
				code = f.code
			}
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("print the findings: %w", err)
	}
	if failed > 0 {
		return exit.Errorf(code, "", "%d of %d checks failed: see the lines with FAIL", failed, len(findings))
	}
	return nil
}

func writeFinding(text *strings.Builder, f finding) {
	line := fmt.Sprintf("%-4s  %s", f.verdict, f.what)
	if f.fix != "" {
		line += "  -- " + f.fix
	}
	text.WriteString(quote.Printable(strings.ReplaceAll(line, "\n", "; ")) + "\n")
}
