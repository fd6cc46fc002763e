package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var (
	tableRow = regexp.MustCompile("(?m)^\\| (`-[^|]*(?:\\\\\\|[^|]*)*) \\|")
	longFlag = regexp.MustCompile("--([a-z][a-z-]*)")
)

// TestUsagePageListsTheFlagsOfACopy compares the tables of docs/guide/copying.md with the flags of a copy.
func TestUsagePageListsTheFlagsOfACopy(t *testing.T) {
	var listed, want []string
	tables := section(t, readFile(t, "..", "..", "docs", "guide", "copying.md"), "## Flags")
	for _, row := range tableRow.FindAllStringSubmatch(tables, -1) {
		for _, match := range longFlag.FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, match[1])
		}
	}
	flagsOfACopy().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			want = append(want, f.Name)
		}
	})
	for _, name := range want {
		if !slices.Contains(listed, name) && !slices.Contains([]string{"help", "version"}, name) {
			t.Errorf("docs/guide/copying.md lacks --%s", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(want, name) {
			t.Errorf("a copy has no flag --%s", name)
		}
	}
	if len(want) < 40 {
		t.Errorf("a copy has the flags %s only", strings.Join(want, " "))
	}
}
