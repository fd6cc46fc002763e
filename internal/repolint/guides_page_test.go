package repolint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	guidesHeader = "| Section | Where it is | Try it | Tests |"
	guideNothing = "–" // in a cell of a section that was left out
)

var (
	codeSpan    = regexp.MustCompile("`([^`]+)`")
	goTestName  = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w+$`)
	cTestName   = regexp.MustCompile(`^(\w+_test):(\w+)$`)
	settingWord = regexp.MustCompile(`^[A-Z_]+=`)
	makeTarget  = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	exampleFlag = regexp.MustCompile(`\{"(\w)", "([a-z-]+)", `)
)

// guideRow is what the page says about one section of a guide.
type guideRow struct{ section, where, try, tests string }

// TestGuidesPageNamesWhatExists keeps docs/SEEDS.md from naming files, commands and tests that do not exist. The
// commands of dma-copy are parsed by a test of the program.
func TestGuidesPageNamesWhatExists(t *testing.T) {
	rows := guideRows(readFile(t, filepath.Join(repositoryRoot, "docs", "SEEDS.md")))
	if len(rows) < 50 {
		t.Fatalf("the page has %d rows", len(rows))
	}
	declared := declaredTests(t)
	for _, row := range rows {
		for _, problem := range row.problems(t, declared) {
			t.Errorf("%s: %s", row.section, problem)
		}
	}
}

// guideRows returns the rows of the tables of sections. A row with another number of cells has no section.
func guideRows(page string) (rows []guideRow) {
	inTable := false
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == guidesHeader:
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "|-"):
			rows = append(rows, parseGuideRow(line))
		}
	}
	return rows
}

func parseGuideRow(line string) guideRow {
	cells := strings.Split(strings.Trim(line, "| "), " | ")
	if len(cells) != 4 {
		return guideRow{where: line}
	}
	return guideRow{cells[0], cells[1], cells[2], cells[3]}
}

// problems returns what is wrong with a row.
func (r guideRow) problems(t *testing.T, declared map[string]bool) (problems []string) {
	t.Helper()
	if r.section == "" {
		return []string{"not a row of four cells: " + r.where}
	}
	if strings.HasPrefix(r.where, "left out: ") {
		if r.try != guideNothing || r.tests != guideNothing {
			problems = append(problems, "left out, but has a command or a test")
		}
		return problems
	}
	for _, cell := range []struct {
		text  string
		check func(name string) string
	}{
		{r.where, missingFile},
		{r.try, func(command string) string { return unknownCommand(t, command) }},
		{r.tests, func(name string) string { return missingTest(t, declared, name) }},
	} {
		spans := codeSpan.FindAllStringSubmatch(cell.text, -1)
		if len(spans) == 0 {
			problems = append(problems, fmt.Sprintf("nothing is named in %q", cell.text))
		}
		for _, span := range spans {
			if problem := cell.check(span[1]); problem != "" {
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

func missingFile(name string) string {
	if _, err := os.Stat(filepath.Join(repositoryRoot, name)); err != nil {
		return "no file " + name
	}
	return ""
}

// unknownCommand returns what is wrong with a command: its make target, or the name or a flag of an example.
func unknownCommand(t *testing.T, command string) string {
	t.Helper()
	words := strings.Fields(command)
	for len(words) > 0 && settingWord.MatchString(words[0]) {
		words = words[1:]
	}
	switch {
	case len(words) == 0:
		return "no command in " + command
	case words[0] == "dma-copy":
		return ""
	case words[0] == "make":
		return unknownTarget(t, words[1:])
	default:
		return wrongExample(t, words[0], words[1:])
	}
}

func unknownTarget(t *testing.T, words []string) string {
	t.Helper()
	var targets []string
	for _, match := range makeTarget.FindAllStringSubmatch(readFile(t, filepath.Join(repositoryRoot, "Makefile")), -1) {
		targets = append(targets, match[1])
	}
	for _, word := range words {
		if !settingWord.MatchString(word) && !slices.Contains(targets, word) {
			return "no target " + word
		}
	}
	return ""
}

func wrongExample(t *testing.T, name string, arguments []string) string {
	t.Helper()
	folder := filepath.Join(repositoryRoot, "softdoca", "examples")
	programs := regexp.MustCompile(`(?m)^PROGRAMS \+?:?= .*\b` + name + `\b`)
	if !regexp.MustCompile(`^\w+$`).MatchString(name) ||
		!programs.MatchString(readFile(t, filepath.Join(folder, "Makefile"))) {
		return "no program " + name
	}
	flags := []string{"--help"} // of every program
	for _, match := range exampleFlag.FindAllStringSubmatch(readFile(t, filepath.Join(folder, name+".c")), -1) {
		flags = append(flags, "-"+match[1], "--"+match[2])
	}
	for _, argument := range arguments {
		if strings.HasPrefix(argument, "-") && !slices.Contains(flags, argument) {
			return name + " has no flag " + argument
		}
	}
	return ""
}

// missingTest returns what is wrong with the name of a test, in one of the spellings that the page explains.
func missingTest(t *testing.T, declared map[string]bool, name string) string {
	t.Helper()
	switch match := cTestName.FindStringSubmatch(name); {
	case goTestName.MatchString(name) && declared[name]:
		return ""
	case match != nil && cTestExists(t, match[1], match[2]):
		return ""
	case strings.HasSuffix(name, ".sh") && missingFile("softdoca/kit/test/"+name) == "":
		return ""
	case namedScript.MatchString("`"+name+"`") && scriptExists(t, name):
		return ""
	default:
		return "no test " + name
	}
}

// cTestExists reports whether a C test of the software device, or of the C that calls it, runs the function.
func cTestExists(t *testing.T, file, function string) bool {
	t.Helper()
	for _, folder := range []string{"softdoca/test/", cabiPackage + "/ctest/"} {
		path := folder + file + ".c"
		if missingFile(path) == "" {
			return strings.Contains(readFile(t, filepath.Join(repositoryRoot, path)), "\tRUN("+function+");\n")
		}
	}
	return false
}

// TestGuideRowsAreChecked has one wrong name of each kind.
func TestGuideRowsAreChecked(t *testing.T) {
	declared := map[string]bool{"TestSizes": true}
	good := guideRow{"a section", "here: `internal/comch`", "`make soak COPIES=20`, `dma_local_copy -t hello`",
		"`TestSizes`, `dma_test:test_sizes`, `examples.sh`, `host_sends`"}
	if problems := good.problems(t, declared); len(problems) > 0 {
		t.Fatalf("a good row: %q", problems)
	}
	change := func(from, to string) guideRow {
		replaced := strings.NewReplacer(from, to)
		return guideRow{good.section, replaced.Replace(good.where), replaced.Replace(good.try),
			replaced.Replace(good.tests)}
	}
	for _, tc := range []struct {
		row  guideRow
		want string
	}{
		{change("internal/comch", "internal/channel"), "no file internal/channel"},
		{change("`internal/comch`", "somewhere"), `nothing is named in "here: somewhere"`},
		{change("soak", "soaking"), "no target soaking"},
		{change("dma_local_copy", "dma_copy"), "no program dma_copy"},
		{change("dma_local_copy", "ls /"), "no program ls"},
		{change("-t", "-x"), "dma_local_copy has no flag -x"},
		{change("make soak COPIES=20", "COPIES=20"), "no command in COPIES=20"},
		{change("TestSizes", "TestShapes"), "no test TestShapes"},
		{change("dma_test:test_sizes", "dma_test:test_shapes"), "no test dma_test:test_shapes"},
		{change("dma_test:test_sizes", "copy_test:test_sizes"), "no test copy_test:test_sizes"},
		{change("examples.sh", "samples.sh"), "no test samples.sh"},
		{change("host_sends", "host_receives"), "no test host_receives"},
		{change("here: ", "left out: "), "left out, but has a command or a test"},
		{parseGuideRow("| a section | somewhere | anything |"),
			"not a row of four cells: | a section | somewhere | anything |"},
	} {
		if problems := tc.row.problems(t, declared); !slices.Equal(problems, []string{tc.want}) {
			t.Errorf("%+v: %q, want %q", tc.row, problems, tc.want)
		}
	}
}

func TestGuideRows(t *testing.T) {
	page := "# A title\n\n| Other | Table |\n|---|---|\n| a | b |\n\n" + guidesHeader +
		"\n|---|---|---|---|\n| one | a | b | c |\n| two | left out: why | – | – |\n\nEnd.\n"
	want := []guideRow{{"one", "a", "b", "c"}, {"two", "left out: why", guideNothing, guideNothing}}
	if got := guideRows(page); !slices.Equal(got, want) {
		t.Errorf("rows %+v, want %+v", got, want)
	}
}
