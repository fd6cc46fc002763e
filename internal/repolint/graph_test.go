package repolint

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the import graph and the picture in docs")

const (
	graphStart = "<!-- imports: make imports -->\n```\n"
	graphEnd   = "```\n<!-- end of imports -->\n"
	graphWidth = 100
)

// TestArchitecturePageShowsTheImports compares the graph in docs/ARCHITECTURE.md with what `go list` reports.
func TestArchitecturePageShowsTheImports(t *testing.T) {
	file := filepath.Join(repositoryRoot, "docs", "ARCHITECTURE.md")
	page := readFile(t, file)
	before, rest, found := strings.Cut(page, graphStart)
	shown, after, ended := strings.Cut(rest, graphEnd)
	if !found || !ended {
		t.Fatalf("docs/ARCHITECTURE.md has no import graph between %q and %q", graphStart, graphEnd)
	}
	want := drawGraph(importGraph(listPackages(t)))
	if *update {
		if err := os.WriteFile(file, []byte(before+graphStart+want+graphEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if shown != want {
		t.Errorf("docs/ARCHITECTURE.md shows\n%s\nwant (`make imports` writes it)\n%s", shown, want)
	}
}

// importGraph returns the imports within the module of each package that the program is built of, without tests and
// test support.
func importGraph(packages []listedPackage) map[string][]string {
	graph := map[string][]string{}
	for _, p := range packages {
		folder := strings.TrimPrefix(p.ImportPath, modulePath+"/")
		if imported := foldersOf(p.Imports); !isTestSupport(folder) && len(imported) > 0 {
			graph[folder] = imported
		}
	}
	return graph
}

// drawGraph returns a paragraph of text for each package: its name, an arrow and its imports, from the top layer to
// the bottom. It leaves out the leading "internal/" of names.
func drawGraph(graph map[string][]string) string {
	packages := make([]string, 0, len(graph))
	indent := 0
	for folder := range graph {
		packages = append(packages, folder)
		indent = max(indent, len(shortName(folder)))
	}
	slices.SortFunc(packages, byLayer)
	var text strings.Builder
	for _, folder := range packages {
		names := slices.SortedFunc(slices.Values(graph[folder]), byLayer)
		for i, line := range wrap(names, graphWidth-indent-len(" -> ")) {
			label, arrow := shortName(folder), "->"
			if i > 0 {
				label, arrow = "", "  "
			}
			fmt.Fprintf(&text, "%-*s %s %s\n", indent, label, arrow, line)
		}
	}
	return text.String()
}

func byLayer(a, b string) int {
	return cmp.Or(cmp.Compare(layerOf(a), layerOf(b)), cmp.Compare(a, b))
}

// wrap returns the short names of packages as lines of at most so many columns.
func wrap(folders []string, columns int) (lines []string) {
	for _, folder := range folders {
		name := shortName(folder)
		if last := len(lines) - 1; last >= 0 && len(lines[last])+len("  ")+len(name) <= columns {
			lines[last] += "  " + name
		} else {
			lines = append(lines, name)
		}
	}
	return lines
}

func shortName(folder string) string { return strings.TrimPrefix(folder, "internal/") }

func TestDrawGraph(t *testing.T) {
	graph := importGraph([]listedPackage{
		{ImportPath: modulePath + "/internal/quote", Imports: []string{"strings"}},
		{ImportPath: modulePath + "/internal/doca", Imports: append(ours("internal/quote", cabiPackage), "os")},
		{ImportPath: modulePath + "/internal/comch/comchtest", Imports: ours("internal/comch")},
		{ImportPath: modulePath + "/internal/comch", Imports: ours("internal/doca")},
	})
	const want = "" +
		"comch -> doca\n" +
		"doca  -> doca/internal/cabi  quote\n"
	if got := drawGraph(graph); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
