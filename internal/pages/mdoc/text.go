package mdoc

import (
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/phrase"
)

// Paragraphs writes a text, whose paragraphs are separated by blank lines.
func (p *Page) Paragraphs(text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			p.Break()
		}
		p.paragraph(strings.ReplaceAll(paragraph, "\n", " "))
	}
}

// Break separates a paragraph from what is in front of it in the section.
func (p *Page) Break() { p.macro("Pp") }

// Rows writes a list of terms.
func (p *Page) Rows(rows []option.Row) {
	p.list(len(rows), func(i int) (head, text string) {
		head = " Cm " + quoted(rows[i].Term)
		if rows[i].Kind != "" {
			head += " No " + quoted("("+rows[i].Kind+")")
		}
		return head, rows[i].Text
	})
}

// Option is an entry of a list of options.
type Option struct {
	Names []string // with their dashes
	Value string   // stands for the value; empty: none
	Text  string
}

// Options writes a list of options.
func (p *Page) Options(options []Option) {
	p.list(len(options), func(i int) (head, text string) {
		for _, name := range options[i].Names {
			head += " , Fl " + quoted(strings.TrimPrefix(name, "-"))
		}
		if value := options[i].Value; value != "" {
			head += " Ar " + quoted(value)
		}
		return strings.TrimPrefix(head, " ,"), options[i].Text
	})
}

// list writes entries, each with a line of macros as its head. There may be none.
func (p *Page) list(length int, entry func(i int) (head, text string)) {
	if length == 0 {
		return
	}
	p.text.WriteString(".Bl -tag -width Ds\n")
	for i := range length {
		head, text := entry(i)
		p.text.WriteString(".It" + head + "\n")
		p.paragraph(text)
	}
	p.text.WriteString(".El\n")
}

// Literal writes lines as they are.
func (p *Page) Literal(text string) {
	p.text.WriteString(".Bd -literal -offset indent\n")
	for line := range strings.Lines(text) {
		p.line(escape(strings.TrimSuffix(line, "\n")))
	}
	p.text.WriteString(".Ed\n")
}

// sentence matches the end of a sentence inside of a paragraph.
var sentence = pattern(`([\pL\d)"][.!?][")]?) +`)

// lineWidth is the longest line of text in the source of a page, in bytes.
const lineWidth = 80

// paragraph writes a text that the reader's program fills, with a new line for each sentence as mdoc wants it.
func (p *Page) paragraph(text string) {
	for line := range strings.SplitSeq(sentence().ReplaceAllString(text, "$1\n"), "\n") {
		for _, part := range phrase.Wrap(escape(line), lineWidth) {
			p.line(part)
		}
	}
}
