package repolint

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	usesLine   = regexp.MustCompile(`(?m)^[\s-]*["']?uses["']?\s*:.*$`)
	pinnedUses = regexp.MustCompile(`^[\s-]*uses: ([\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$`)
	jobLine    = regexp.MustCompile(`(?m)^  [\w-]+:$`)
)

// TestWorkflows checks that each workflow runs only actions of a known commit, with few rights and a time limit. A tag
// of an action can be moved to other code, a commit cannot.
func TestWorkflows(t *testing.T) {
	paths := slices.Concat(glob(t, ".github/workflows/*.yml"), glob(t, ".github/workflows/*.yaml"))
	if len(paths) < 2 {
		t.Fatalf("found the workflows %q only", paths)
	}
	pins := map[string]string{}
	for _, path := range paths {
		text := readFile(t, path)
		for _, problem := range slices.Concat(unpinned(text, pins), withoutLimits(text)) {
			t.Errorf("%s: %s", filepath.Base(path), problem)
		}
	}
	if len(pins) == 0 {
		t.Error("the workflows use no action")
	}
}

// unpinned returns what is wrong with the actions that a workflow uses. The pins of the actions, with their versions,
// are the same in all workflows.
func unpinned(workflow string, pins map[string]string) (problems []string) {
	for _, line := range usesLine.FindAllString(workflow, -1) {
		match := pinnedUses.FindStringSubmatch(line)
		if match == nil {
			problems = append(problems, strings.TrimSpace(line)+": want uses: OWNER/NAME@COMMIT # vX.Y.Z")
			continue
		}
		pin := match[2] + " # " + match[3]
		if other, known := pins[match[1]]; known && other != pin {
			problems = append(problems, fmt.Sprintf("%s is used at %s and at %s", match[1], other, pin))
		}
		pins[match[1]] = pin
	}
	return problems
}

// withoutLimits returns what a workflow, or a job of it, leaves to defaults: its rights, its duration and what happens
// to the run before it.
func withoutLimits(workflow string) (problems []string) {
	for _, setting := range []string{"permissions", "concurrency"} {
		if !strings.Contains(workflow, "\n"+setting+":\n") {
			problems = append(problems, "no "+setting)
		}
	}
	_, jobs, found := strings.Cut(workflow, "\njobs:\n")
	starts := jobLine.FindAllStringIndex(jobs, -1)
	if !found || len(starts) == 0 {
		return append(problems, "no jobs")
	}
	for i, start := range starts {
		end := len(jobs)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		if name := jobs[start[0]:start[1]]; !strings.Contains(jobs[start[0]:end], "\n    timeout-minutes: ") {
			problems = append(problems, "job "+strings.Trim(name, " :")+" has no timeout-minutes")
		}
	}
	return problems
}

func TestUnpinned(t *testing.T) {
	commit := strings.Repeat("0a", 20)
	for line, want := range map[string]bool{
		"      - uses: actions/checkout@" + commit + " # v1.2.3\n":                 false,
		"        uses: owner/name/path@" + commit + " # v1.2.3\n":                  false,
		"      - uses: actions/checkout@v6\n":                                      true,
		"      - uses: actions/checkout@" + commit + "\n":                          true,
		"      - uses: actions/checkout@" + commit + " # v6\n":                     true,
		"      - uses: actions/checkout@" + commit[1:] + " # v1.2.3\n":             true,
		"      - \"uses\": actions/checkout@v6\n":                                  true,
		"      - uses: docker://debian:12\n":                                       true,
		"      - run: echo # uses: actions/checkout@v6\n":                          false,
		"      - uses: known/action@" + strings.ToUpper(commit[:40]) + " # v1.2.3": true,
		"      - uses: known/action@" + commit + " # v1.2.4\n":                     true,
	} {
		pins := map[string]string{"known/action": commit + " # v1.2.3"}
		if problems := unpinned(line, pins); (len(problems) > 0) != want {
			t.Errorf("%q: %q, want a problem: %t", line, problems, want)
		}
	}
}

func TestWithoutLimits(t *testing.T) {
	const good = "on: push\npermissions:\n  contents: read\nconcurrency:\n  group: x\njobs:\n" +
		"  a:\n    timeout-minutes: 5\n  b-c:\n    steps:\n      - run: x\n    timeout-minutes: 5\n"
	if problems := withoutLimits(good); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
	for removed, want := range map[string]string{
		"permissions:\n": "no permissions", "concurrency:\n": "no concurrency", "jobs:\n": "no jobs",
		"  a:\n    timeout-minutes: 5\n": "",
	} {
		problems := withoutLimits(strings.Replace(good, removed, "", 1))
		if want != "" && !slices.Equal(problems, []string{want}) || want == "" && len(problems) > 0 {
			t.Errorf("without %q: %q, want %q", removed, problems, want)
		}
	}
	unlimited := strings.Replace(good, "    timeout-minutes: 5\n  b-c", "  b-c", 1)
	if problems := withoutLimits(unlimited); !slices.Equal(problems, []string{"job a has no timeout-minutes"}) {
		t.Errorf("a job without a limit: %q", problems)
	}
}
