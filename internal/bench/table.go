package bench

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table has rows of cells below a head, all of the same length.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// writeText aligns the first column to the left and the others to the right.
func (t *table) writeText(w io.Writer) error {
	widths := t.widths()
	var text strings.Builder
	for _, row := range append([][]string{t.head}, t.rows...) {
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

func (t *table) widths() []int {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// writeMarkdown writes no padding. Cells must not contain a bar.
func (t *table) writeMarkdown(w io.Writer) error {
	var text strings.Builder
	text.WriteString("| " + strings.Join(t.head, " | ") + " |\n|---|" + strings.Repeat("---:|", len(t.head)-1) + "\n")
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

func (t *table) write(w io.Writer, form Form) error {
	if form == Markdown {
		return t.writeMarkdown(w)
	}
	return t.writeText(w)
}

// reportWriter writes paragraphs and tables one below the other, and keeps the first error.
type reportWriter struct {
	w       io.Writer
	form    Form
	started bool
	err     error
}

func (s *reportWriter) paragraph(lines ...string) {
	s.gap()
	for _, line := range lines {
		s.printf("%s\n", line)
	}
}

func (s *reportWriter) table(t *table) {
	s.gap()
	if s.err == nil {
		s.err = t.write(s.w, s.form)
	}
}

// list writes one line for each entry, in Markdown as a list, because Markdown would join lines.
func (s *reportWriter) list(lines []string) {
	if len(lines) == 0 {
		return
	}
	if s.form == Markdown {
		lines = []string{"- " + strings.Join(lines, "\n- ")}
	}
	s.paragraph(lines...)
}

// gap writes an empty line, except at the start.
func (s *reportWriter) gap() {
	if s.started {
		s.printf("\n")
	}
	s.started = true
}

func (s *reportWriter) printf(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
}
