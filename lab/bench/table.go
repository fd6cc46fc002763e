package bench

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table has rows of cells below a head, all of the same length.
type Table struct {
	Head []string
	rows [][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// writeText aligns the first column to the left and the others to the right.
func (t *Table) writeText(w io.Writer) error {
	widths := t.widths()
	var text strings.Builder
	for _, row := range append([][]string{t.Head}, t.rows...) {
		line := ""
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line = cell + gap
			} else {
				line += "  " + gap + cell
			}
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// writeMarkdown writes no padding. Cells must not contain a bar.
func (t *Table) writeMarkdown(w io.Writer) error {
	var text strings.Builder
	text.WriteString("| " + strings.Join(t.Head, " | ") + " |\n|---|" + strings.Repeat("---:|", len(t.Head)-1) + "\n")
	for _, row := range t.rows {
		text.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// Form is the output format of a record.
type Form string

// The forms.
const (
	Text     Form = "text"
	Markdown Form = "markdown"
)

func (t *Table) write(w io.Writer, form Form) error {
	if form == Markdown {
		return t.writeMarkdown(w)
	}
	return t.writeText(w)
}

// Report writes paragraphs and tables one below the other, and keeps the first error.
type Report struct {
	W       io.Writer
	Form    Form
	Err     error // the first one
	started bool
}

// Paragraph writes lines.
func (s *Report) Paragraph(lines ...string) {
	s.gap()
	for _, line := range lines {
		s.printf("%s\n", line)
	}
}

// Table writes a table.
func (s *Report) Table(t *Table) {
	s.gap()
	if s.Err == nil {
		s.Err = t.write(s.W, s.Form)
	}
}

// List writes one line for each entry, in Markdown as a list, because Markdown would join lines.
func (s *Report) List(lines []string) {
	if len(lines) == 0 {
		return
	}
	if s.Form == Markdown {
		lines = []string{"- " + strings.Join(lines, "\n- ")}
	}
	s.Paragraph(lines...)
}

// gap writes an empty line, except at the start.
func (s *Report) gap() {
	if s.started {
		s.printf("\n")
	}
	s.started = true
}

func (s *Report) printf(format string, args ...any) {
	if s.Err == nil {
		_, s.Err = fmt.Fprintf(s.W, format, args...)
	}
}
