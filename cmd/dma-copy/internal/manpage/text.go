package manpage

import "strings"

// Text writes a text of the help. Blank lines separate its parts: a paragraph; command lines, which begin with two
// blanks; or a table, whose lines have a term, two blanks or more, and the description of the term, which goes on in
// lines that begin with a blank.
func (p *Page) Text(text string) {
	for i, part := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		lines := strings.Split(part, "\n")
		table := isTable(lines)
		if i > 0 && !table {
			p.macro("Pp")
		}
		switch {
		case table:
			p.Table(part)
		case strings.HasPrefix(part, "  "):
			p.literal(lines)
		default:
			p.paragraph(strings.Join(lines, " "))
		}
	}
}

// isTable reports whether the lines are those of a table. A line of a paragraph may have two blanks, but not all have.
func isTable(lines []string) bool {
	for i, line := range lines {
		if i == 0 && strings.HasPrefix(line, " ") || !strings.HasPrefix(line, " ") && !row().MatchString(line) {
			return false
		}
	}
	return true
}

// row matches the first line of a term and its description.
var row = pattern(`^ {0,2}(\S(?: ?\S)*) {2,}(\S.*)$`)

// Table writes the lines of a table. All of them may be indented by two blanks.
func (p *Page) Table(text string) {
	var terms, descriptions []string
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		line = strings.TrimSuffix(line, "\n")
		switch cells := row().FindStringSubmatch(line); {
		case cells != nil && !strings.HasPrefix(line, "   "):
			terms, descriptions = append(terms, cells[1]), append(descriptions, cells[2])
		case len(terms) > 0:
			descriptions[len(terms)-1] += " " + strings.TrimSpace(line)
		}
	}
	p.begin()
	for i, term := range terms {
		p.macro("It", term)
		p.paragraph(descriptions[i])
	}
	p.end()
}

// Option is an entry of a list of options.
type Option struct {
	Names       []string // with their dashes
	Value       string   // stands for the value; empty: none
	Description string
}

// Options writes a list of options.
func (p *Page) Options(options []Option) {
	p.begin()
	for _, o := range options {
		p.text.WriteString(".It")
		for i, name := range o.Names {
			if i > 0 {
				p.text.WriteString(" ,")
			}
			p.text.WriteString(" Fl " + quoted(strings.TrimPrefix(name, "-")))
		}
		if o.Value != "" {
			p.text.WriteString(" Ar " + quoted(o.Value))
		}
		p.text.WriteString("\n")
		p.paragraph(o.Description)
	}
	p.end()
}

// Entry is an entry of any other list.
type Entry struct {
	Term        string
	Kind        string // in parentheses behind the term; may be empty
	Description string
}

// Entries writes a list of terms.
func (p *Page) Entries(entries []Entry) {
	p.begin()
	for _, e := range entries {
		p.text.WriteString(".It Cm " + quoted(e.Term))
		if e.Kind != "" {
			p.text.WriteString(" No " + quoted("("+e.Kind+")"))
		}
		p.text.WriteString("\n")
		p.paragraph(e.Description)
	}
	p.end()
}

// Literal writes lines as they are.
func (p *Page) Literal(text string) { p.literal(strings.Split(strings.TrimRight(text, "\n"), "\n")) }

func (p *Page) literal(lines []string) {
	p.text.WriteString(".Bd -literal -offset indent\n")
	for _, line := range lines {
		p.line(escape(strings.TrimPrefix(line, "  ")))
	}
	p.text.WriteString(".Ed\n")
}

func (p *Page) begin() { p.text.WriteString(".Bl -tag -width Ds\n") }
func (p *Page) end()   { p.text.WriteString(".El\n") }

// sentence matches the end of a sentence inside of a paragraph.
var sentence = pattern(`([\pL\d)"][.!?][")]?) +`)

// paragraph writes a text that the reader's program fills, with a new line for each sentence as mdoc wants it.
func (p *Page) paragraph(text string) {
	for line := range strings.SplitSeq(sentence().ReplaceAllString(text, "$1\n"), "\n") {
		for _, part := range wrapped(escape(line)) {
			p.line(part)
		}
	}
}

// lineWidth is the longest line of text in the source of a page, in bytes.
const lineWidth = 80

// wrapped breaks a line at blanks.
func wrapped(line string) (lines []string) {
	for len(line) > lineWidth {
		blank := strings.LastIndexByte(line[:lineWidth+1], ' ')
		if blank < 0 { // the word is longer than a line
			blank = strings.IndexByte(line, ' ')
		}
		if blank < 0 {
			break
		}
		lines, line = append(lines, strings.TrimRight(line[:blank], " ")), strings.TrimLeft(line[blank:], " ")
	}
	return append(lines, line)
}
