package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/pages/mdoc"
	"github.com/dma-copy/dma-copy/internal/release"
)

// writeManual writes the manual pages into man1 and man5 below a directory.
func writeManual(p *root.Program, directory string) error {
	date, err := releaseDate()
	if err != nil {
		return err
	}
	return write(directory, manualPages(p, date))
}

// releaseDate returns the date of SOURCE_DATE_EPOCH, by which builds of one source are the same, or the current one.
func releaseDate() (time.Time, error) {
	text, set := os.LookupEnv("SOURCE_DATE_EPOCH")
	if !set {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: not a number of seconds: %w", errors.Unwrap(err))
	}
	return time.Unix(seconds, 0), nil
}

// The page of the parameter file, and how other pages name it.
const (
	filePage    = "dma-copy.json"
	seeProgram  = "dma-copy 1"
	seeFilePage = filePage + " 5"
)

// manualFiles are the files that the program reads without being told.
var manualFiles = []option.Row{
	{Term: "/etc/dma-copy/config.json", Text: "Defaults of this machine, see dma-copy.json(5)"},
	{Term: "/etc/dma-copy", Text: "Key of this side and trusted keys, of root"},
	{Term: "~/.config/dma-copy", Text: "The same of other users; XDG_CONFIG_HOME names another directory than " +
		"~/.config"},
	{Term: "/run/dma-copy", Text: "Locks and sockets of the daemons"},
}

// manualPages returns the text of all pages by their file's path.
func manualPages(p *root.Program, date time.Time) map[string]string {
	pages := map[string]string{
		"man1/dma-copy.1":         programPage(p, date),
		"man5/" + filePage + ".5": parameterFilePage(p, date),
	}
	for _, c := range p.Commands {
		pages["man1/dma-copy-"+c.Name+".1"] = manualPage(date, c)
	}
	return pages
}

func newPage(name string, section int, summary string, date time.Time) *mdoc.Page {
	return mdoc.New(mdoc.Header{
		Name: name, Section: section, Summary: summary, Version: release.SoftwareName(), Date: date,
	})
}

func programPage(p *root.Program, date time.Time) string {
	page := newPage("dma-copy", 1, "copy files between a host and its BlueField DPU", date)
	usage, about, _ := strings.Cut(root.Introduction, "\n\n")
	writeSynopsis(page, usage)
	page.Section("DESCRIPTION")
	page.Paragraphs(about)
	writeOptions(page, p.Copy)
	page.Paragraphs(root.NativeFlags(p.Copy.Settings))
	page.Section("COMMANDS")
	see := []string{}
	var rows []option.Row
	for _, c := range p.Commands {
		rows = append(rows, option.Row{Term: c.Name, Text: c.Summary + "."})
		see = append(see, "dma-copy-"+c.Name+" 1")
	}
	page.Rows(rows)
	writeClosing(page, p.Copy.Examples)
	page.See(append(see, seeFilePage)...)
	return page.String()
}

func manualPage(date time.Time, c root.Command) string {
	p := newPage("dma-copy-"+c.Name, 1, c.Summary, date)
	writeSynopsis(p, strings.TrimSpace(c.Usage()))
	p.Section("DESCRIPTION")
	p.Paragraphs(c.About)
	p.Rows(c.List)
	if c.Notes != "" {
		p.Break()
		p.Paragraphs(c.Notes)
	}
	writeOptions(p, c)
	writeClosing(p, c.Examples)
	p.See(seeProgram, seeFilePage)
	return p.String()
}

// parameterFilePage returns the page of the parameter file.
func parameterFilePage(p *root.Program, date time.Time) string {
	page := newPage(filePage, 5, "parameter file of dma-copy", date)
	page.Section("DESCRIPTION")
	page.Paragraphs(`A parameter file holds flags of dma-copy(1) and its commands in the JSON form of
DOCA programs. It may have comments and trailing commas. --json names one, and
/etc/dma-copy/config.json has the defaults of a machine.

The file is one object, and its members are groups. Each group is an object with
the keys below, each at most once. An unknown key, or a value
that the flag would refuse, is an error, also of a command that does not use it.
A list has one value for each time that the flag would be given.

` + root.ValueSyntax)
	for _, group := range p.Settings().DescribeFile() {
		page.Section(strings.ToUpper(strings.ReplaceAll(group.Name, "_", " ")))
		page.Paragraphs("Group \"" + group.Name + "\". " + group.About)
		page.Rows(group.Keys)
	}
	page.Section("FILES")
	page.Rows(manualFiles)
	page.Section("EXAMPLES")
	page.Literal(root.ParameterFileExample)
	page.Section("SEE ALSO")
	page.See(seeProgram, "dma-copy-config 1", "dma-copy-serve 1")
	return page.String()
}

// writeSynopsis writes the lines of a usage, which begin with "Usage:" or blanks and the name of the program.
func writeSynopsis(p *mdoc.Page, usage string) {
	p.Section("SYNOPSIS")
	for line := range strings.Lines(usage) {
		words := strings.TrimSpace(strings.TrimPrefix(line, "Usage:"))
		p.Synopsis("dma-copy", strings.TrimPrefix(words, "dma-copy "))
	}
}

// writeClosing writes the sections behind the options that every command has, and begins the last one.
func writeClosing(p *mdoc.Page, examples string) {
	p.Section("ENVIRONMENT")
	p.Paragraphs(root.ValueSyntax)
	p.Rows(root.Environment())
	p.Section("SIGNALS")
	p.Rows(root.Signals)
	p.Section("FILES")
	p.Rows(manualFiles)
	p.Section("EXIT STATUS")
	p.Rows(root.ExitCodes())
	p.Section("EXAMPLES")
	p.Literal(examples)
	p.Section("SEE ALSO")
}

// writeOptions writes the section of the flags: first the everyday ones, then the others by topic.
func writeOptions(p *mdoc.Page, c root.Command) {
	p.Section("OPTIONS")
	p.Options(manualOptions(append(root.OwnFlags(c), option.Everydays(c.Settings)...)))
	for _, block := range option.ByTopic(c.Settings) {
		p.Subsection(block.Title)
		p.Options(manualOptions(block.List))
	}
}

func manualOptions(list []option.Described) (options []mdoc.Option) {
	for _, o := range list {
		options = append(options, mdoc.Option{Names: o.Names, Value: o.Value, Text: o.Sentence()})
	}
	return options
}
