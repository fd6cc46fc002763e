// Package mdoc writes manual pages in the language mdoc(7), which groff and mandoc read.
//
// It knows the form of a page and not what it is about.
package mdoc

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Header is what a page begins with.
type Header struct {
	Name    string    // of what the page describes, such as dma-copy-push
	Section int       // of the manual: 1 for commands, 5 for files
	Summary string    // one line, without a period
	Version string    // program and version, for the foot of the page
	Date    time.Time // of the release
}

// Page is a manual page that is being written. It is for one goroutine.
type Page struct {
	text strings.Builder
}

// New begins a page with its header and the section NAME.
func New(h Header) *Page {
	p := new(Page)
	p.macro("Dd", h.Date.UTC().Format("January 2, 2006"))
	p.macro("Dt", strings.ToUpper(h.Name), fmt.Sprint(h.Section))
	p.macro("Os", h.Version)
	p.Section("NAME")
	p.macro("Nm", h.Name)
	p.macro("Nd", strings.Fields(h.Summary)...) // programs that list pages would show quotes
	return p
}

// String returns what has been written.
func (p *Page) String() string { return p.text.String() }

// Section begins a section.
func (p *Page) Section(title string) { p.macro("Sh", title) }

// Subsection begins a part of a section.
func (p *Page) Subsection(title string) { p.macro("Ss", title) }

// Synopsis writes one form of a command: its words. Words in capitals stand for something else.
func (p *Page) Synopsis(program, words string) {
	p.macro("Nm", program)
	p.line(placeholder().ReplaceAllString(escape(words), `\fI$0\fP`))
}

// placeholder matches a word in capitals.
var placeholder = pattern(`\b[A-Z]{2,}\b`)

// See refers to other pages: names with their section behind a blank, sorted by section and name.
func (p *Page) See(pages ...string) {
	for i, page := range pages {
		words := strings.Fields(page)
		if i < len(pages)-1 {
			words = append(words, ",")
		}
		p.text.WriteString(".Xr " + strings.Join(words, " ") + "\n")
	}
}

// macro writes a macro whose arguments are text.
func (p *Page) macro(name string, arguments ...string) {
	p.text.WriteString("." + name)
	for _, argument := range arguments {
		p.text.WriteString(" " + quoted(argument))
	}
	p.text.WriteString("\n")
}

// quoted returns an argument that no macro takes for the name of another one.
func quoted(argument string) string {
	argument = strings.ReplaceAll(escape(argument), `"`, `\(dq`)
	if macroName().MatchString(argument) {
		argument = `\&` + argument
	}
	if strings.ContainsRune(argument, ' ') {
		return `"` + argument + `"`
	}
	return argument
}

// macroName matches what may be the name of a macro.
var macroName = pattern(`^[A-Z%][a-z1-9A-Z]$`)

// line writes a line of text, which is escaped already.
func (p *Page) line(text string) {
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	p.text.WriteString(text + "\n")
}

// escaped has what is not printed as it is: in UTF-8 a hyphen, for one, would not be the keyboard's.
var escaped = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)
})

func escape(text string) string { return escaped().Replace(text) }

// pattern returns a function that compiles an expression on first use: the program that writes pages seldom does.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
