package verify

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// linesVersion is the version of the JSON lines, which docs/verify.schema.json describes. It changes only if a field is
// removed or changes its meaning.
const linesVersion = 1

// verdict is what was found of a file.
type verdict string

const (
	matches    verdict = "ok"
	differs    verdict = "mismatch"
	isMissing  verdict = "missing"
	unreadable verdict = "unreadable"
	unlisted   verdict = "unlisted"
)

// result is what was found of one file, or of a file and its copy, as a JSON line. Fields that do not apply are left
// out.
type result struct {
	lineHeader
	output.FileName
	Copy     string  `json:"copy,omitempty"`
	RawCopy  []byte  `json:"copy_base64,omitempty"`
	Verdict  verdict `json:"verdict"`
	Digest   string  `json:"digest,omitempty"`
	Expected string  `json:"expected,omitempty"` // in the manifest, or of the copy
	Offset   *int64  `json:"first_difference,omitempty"`
	Message  string  `json:"message,omitempty"`
}

type lineHeader struct {
	Version int    `json:"v"`
	Type    string `json:"type"`
}

// manifestLine says which manifest was written.
type manifestLine struct {
	lineHeader
	output.FileName
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// endLine is the last line.
type endLine struct {
	lineHeader
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// WriteEnd writes the last of the JSON lines: the exit code, and the error of the run if it is not 0.
func WriteEnd(stdout io.Writer, code int, message string) error {
	return writeLine(stdout, endLine{lineHeader{linesVersion, "end"}, code, message})
}

func writeLine(w io.Writer, line any) error {
	encoder := json.NewEncoder(quote.JSONWriter{To: w})
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// printResult prints what was found of a file, unless it matches and --quiet was given: as text, with the format for
// what follows the verdict, or as JSON.
func (v verifier) printResult(r result, format string, args ...any) error {
	if r.Verdict == matches && v.settings.Quiet {
		return nil
	}
	if v.settings.Output == option.OutputJSON {
		r.lineHeader = lineHeader{linesVersion, "file"}
		return writeLine(v.stdout, r)
	}
	word := "ok"
	if r.Verdict != matches {
		word = "FAIL"
	}
	line := fmt.Sprintf("%-4s  %s", word, fmt.Sprintf(format, args...))
	if _, err := fmt.Fprintln(v.stdout, quote.Printable(line)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}
