package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
)

var (
	helpCode = regexp.MustCompile(`(?m)^  (\d+(?:, \d+)*) +(\S.*(?:\n {12}\S.*)*)$`)
	pageCode = regexp.MustCompile(`(?m)^## (\d+(?:, \d+)*): (.*)$`)

	quotedText = regexp.MustCompile("`([^`]+)`")
	// failureLine is an error of failures.golden, with its exit code and the program's line.
	failureLine = regexp.MustCompile(`(?m)^("(?:[^"\\]|\\.)*")\n  (\d+) (.*)$`)
)

// codesOf returns the meaning of each exit code of a page. Lines for several codes are split.
func codesOf(pattern *regexp.Regexp, text string) map[int]string {
	meanings := map[int]string{}
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		for number := range strings.SplitSeq(match[1], ", ") {
			code, _ := strconv.Atoi(number) // the pattern has digits only
			meanings[code] = strings.Join(strings.Fields(strings.ReplaceAll(match[2], "`", "")), " ")
		}
	}
	return meanings
}

// constantsOfExit returns the exit codes that package exit declares.
func constantsOfExit(t *testing.T) map[string]int {
	t.Helper()
	file := filepath.Join("..", "..", "internal", "exit", "exit.go")
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]int{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if spec, is := node.(*ast.ValueSpec); is && len(spec.Values) == 1 {
			if number, is := spec.Values[0].(*ast.BasicLit); is {
				codes[spec.Names[0].Name], _ = strconv.Atoi(number.Value)
			}
		}
		return true
	})
	return codes
}

// TestExitCodesAreTheSameEverywhere compares the exit codes of package exit with the help and troubleshooting.md. The
// headings of the page begin with the words of the help.
func TestExitCodesAreTheSameEverywhere(t *testing.T) {
	codes := constantsOfExit(t)
	if codes["Signal"] != exit.Signal || codes["NotHardware"] != exit.NotHardware {
		t.Fatalf("package exit has the codes %v", codes)
	}
	delete(codes, "Signal")
	help := codesOf(helpCode, invoke(nil, "--help").stdout)
	for name, code := range codes {
		if help[code] == "" {
			t.Errorf("the help lacks %s = %d", name, code)
		}
	}
	page := codesOf(pageCode, readFile(t, "..", "..", "docs", "guide", "troubleshooting.md"))
	for code, meaning := range help {
		if page[code] == "" || code <= exit.Signal && !strings.HasPrefix(meaning, page[code]) {
			t.Errorf("%d: the help says %q, troubleshooting.md %q", code, meaning, page[code])
		}
	}
	if len(page) != len(help) {
		t.Errorf("%d codes in the help, %d in troubleshooting.md", len(help), len(page))
	}
}

// TestTroubleshootingPageQuotesTheProgram looks for the messages of troubleshooting.md in the source code, and for
// each hint of the failures that package report knows in the section of its exit code.
func TestTroubleshootingPageQuotesTheProgram(t *testing.T) {
	page := readFile(t, "..", "..", "docs", "guide", "troubleshooting.md")
	checkQuotedMessages(t, page, 4, 60)
	sections, found := sectionsByCode(page), 0
	failures := readFile(t, "..", "..", "internal", "report", "testdata", "failures.golden")
	for _, match := range failureLine.FindAllStringSubmatch(failures, -1) {
		text, err := strconv.Unquote(match[1])
		if err != nil {
			t.Fatalf("%s: %v", match[1], err)
		}
		code, _ := strconv.Atoi(match[2]) // the pattern has digits only
		hint, is := strings.CutPrefix(match[3], strings.ReplaceAll(text, "\n", "; ")+": ")
		if !is {
			continue
		}
		found++
		if !strings.Contains(sections[code], hint) {
			t.Errorf("the section of exit code %d lacks the hint %q", code, hint)
		}
	}
	if found < 40 {
		t.Errorf("found %d hints only", found)
	}
}

// sectionsByCode returns the sections of a page that are about exit codes, without the marks of quotations.
func sectionsByCode(page string) map[int]string {
	sections := map[int]string{}
	starts := pageCode.FindAllStringSubmatchIndex(page, -1)
	for i, start := range starts {
		end := len(page)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		for number := range strings.SplitSeq(page[start[2]:start[3]], ", ") {
			code, _ := strconv.Atoi(number) // the pattern has digits only
			sections[code] = strings.ReplaceAll(page[start[0]:end], "`", "")
		}
	}
	return sections
}

// checkQuotedMessages looks for the messages in the first column of tables in the source code. "..." stands for what
// the program inserts.
func checkQuotedMessages(t *testing.T, page string, columns, least int) {
	t.Helper()
	source := sourceCode(t, filepath.Join("..", ".."))
	rows := 0
	for line := range strings.Lines(page) {
		cells := strings.Split(line, " | ")
		if len(cells) != columns || !strings.HasPrefix(line, "| `") {
			continue
		}
		rows++
		for _, quoted := range quotedText.FindAllStringSubmatch(cells[0], -1) {
			for part := range strings.SplitSeq(quoted[1], "...") {
				if text := strings.Trim(part, " :"); !strings.Contains(source, text) && !isSystemError(text) {
					t.Errorf("the program has no message with %q", text)
				}
			}
		}
	}
	if rows < least {
		t.Errorf("found %d rows", rows)
	}
}

// isSystemError reports whether a text is that of an error number, which the program does not have itself.
func isSystemError(text string) bool {
	for number := range syscall.Errno(200) {
		if number.Error() == text {
			return true
		}
	}
	return false
}
