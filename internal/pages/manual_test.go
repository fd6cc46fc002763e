package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
)

// manualIn writes the manual into a new directory, as make man does, and returns the paths of the pages.
func manualIn(t *testing.T) []string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	directory := t.TempDir()
	must(t, run([]string{"manual", directory}))
	pages, err := filepath.Glob(filepath.Join(directory, "man?", "*.?"))
	must(t, err)
	if len(pages) != len(program.New().Commands)+2 { // the program and the parameter file
		t.Fatalf("pages %q", pages)
	}
	return pages
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// outputOf runs a program. Without it the test is skipped, but fails in CI.
func outputOf(t *testing.T, program string, args ...string) string {
	t.Helper()
	_, err := exec.LookPath(program)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	must(t, err)
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// mandoc finds nothing to warn of. Its remarks on style are left out: they say that the pages are not those of a BSD,
// and that pages which they refer to are not installed.
func TestManualPagesAreClean(t *testing.T) {
	outputOf(t, "mandoc", append([]string{"-T", "lint", "-W", "warning"}, manualIn(t)...)...)
}

// The pages are found by their first line: man-db's index has the name and one line about it.
func TestManualPagesAreIndexed(t *testing.T) {
	entry := regexp.MustCompile(`: "(\S+) - [A-Za-z][^"]+[^".]"\n$`)
	for _, page := range manualIn(t) {
		name := strings.TrimSuffix(filepath.Base(page), filepath.Ext(page))
		line := outputOf(t, "lexgrog", page)
		if match := entry.FindStringSubmatch(line); match == nil || match[1] != name {
			t.Errorf("%s is indexed as %s", page, line)
		}
	}
}

// Each page has the conventional sections in their order, and each option of its command.
func TestManualPagesAreComplete(t *testing.T) {
	settings := map[string]option.Settings{"dma-copy": &copying.Settings{}}
	for _, c := range program.New().Commands {
		settings["dma-copy-"+c.Name] = c.Settings
	}
	sections := regexp.MustCompile(`(?m)^[A-Z][A-Z ]+[A-Z]$`)
	for _, page := range manualIn(t) {
		if strings.HasSuffix(page, ".5") {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(page), ".1")
		text := outputOf(t, "mandoc", "-T", "ascii", "-O", "width=1000", page)
		for strings.Contains(text, "\b") { // bold and underlined letters
			text = regexp.MustCompile(`.\x08`).ReplaceAllString(text, "")
		}
		got := strings.Join(sections.FindAllString(text, -1), ", ")
		got = strings.ReplaceAll(got, "OPTIONS, COMMANDS", "OPTIONS")
		if got != "NAME, SYNOPSIS, DESCRIPTION, OPTIONS, ENVIRONMENT, SIGNALS, FILES, EXIT STATUS, EXAMPLES, SEE ALSO" {
			t.Errorf("%s has the sections %s", name, got)
		}
		for _, o := range option.Describe(settings[name]) {
			head := strings.TrimSpace(strings.Join(o.Names, ", ") + " " + o.Value)
			if !strings.Contains(text, "\n     "+head+"\n") && !strings.Contains(text, "\n     "+head+" ") {
				t.Errorf("%s does not have %s", name, head)
			}
		}
		if !strings.Contains(text, "SIGPIPE") || !strings.Contains(text, "DMA_COPY_CONFIG") {
			t.Errorf("%s lacks exit codes or variables", name)
		}
	}
}

func TestParameterFilePage(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("example.json", []byte(root.ParameterFileExample), 0o600))
	checked, err := program.New().Settings().CheckFile("example.json")
	if err != nil || checked.Shares != 2 || len(checked.Peers) != 2 {
		t.Errorf("the example of the page: %+v, %v", checked, err)
	}
	page := parameterFilePage(program.New(), time.Now())
	for _, group := range program.New().Settings().DescribeFile() {
		if !strings.Contains(page, group.Name[:4]) || group.Name != "doca_dpdk_flags" && len(group.Keys) == 0 {
			t.Errorf("the group %s has the keys %+v", group.Name, group.Keys)
		}
		for _, key := range group.Keys {
			if !strings.Contains(page, "\n.It Cm "+strings.ReplaceAll(key.Term, "-", `\-`)+" No ") {
				t.Errorf("the page does not have %s of %s", key.Term, group.Name)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "today")
	for usage, want := range map[string]string{
		"manual":                 "usage: pages manual|reference DIR",
		"manuals " + t.TempDir(): "usage: pages manual|reference DIR",
		"manual " + t.TempDir():  "SOURCE_DATE_EPOCH: not a number of seconds: invalid syntax",
	} {
		if err := run(strings.Fields(usage)); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", usage, err, want)
		}
	}
}
