package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// recognised is the least part of a licence file, in percent of its words, that must be the text of known licences. The
// rest is the names of authors, and explanations such as which files have which licence.
const recognised = 80

// statement matches a licence that a file states by its identifier; it has precedence over the recognised text.
var statement = regexp.MustCompile(`SPDX-License-Identifier: *([A-Za-z0-9.() +-]*[A-Za-z0-9.)+])`)

// parseAllowList returns the identifiers in a list of one a line, with comments after #.
func parseAllowList(text string) []string {
	var allowed []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			allowed = append(allowed, line)
		}
	}
	return allowed
}

// check sets the licences of modules. It fails, with all modules at fault, if a licence is not allowed, not recognised
// or missing.
func check(modules []*module, allowed []string) error {
	var failed []error
	for _, module := range modules {
		if err := module.check(allowed); err != nil {
			failed = append(failed, fmt.Errorf("module %s: %w", module.path, err))
		}
	}
	return errors.Join(failed...)
}

func (m *module) check(allowed []string) error {
	for _, file := range m.files {
		if isNotice(file.name) {
			continue
		}
		licences, err := classify(file.text, allowed)
		if err != nil {
			return fmt.Errorf("%s: %w", file.name, err)
		}
		m.licences = append(m.licences, licences...)
	}
	if len(m.licences) == 0 {
		return errors.New("no licence file found")
	}
	slices.Sort(m.licences)
	m.licences = slices.Compact(m.licences)
	return nil
}

// isNotice reports whether a file goes with a licence without being one: attributions and grants of patents.
func isNotice(name string) bool {
	base := strings.ToUpper(path.Base(name))
	return strings.HasPrefix(base, "NOTICE") || strings.HasPrefix(base, "PATENTS")
}

// classify returns the licences in a text, all of which are allowed.
func classify(text []byte, allowed []string) ([]string, error) {
	if stated := statement.FindSubmatch(text); stated != nil {
		return choose(string(stated[1]), allowed)
	}
	found := licensecheck.Scan(text)
	var licences []string
	for _, match := range found.Match {
		if !slices.Contains(allowed, match.ID) {
			return nil, fmt.Errorf("licence %s is not allowed", match.ID)
		}
		licences = append(licences, match.ID)
	}
	if found.Percent < recognised {
		return nil, fmt.Errorf("%.0f %% of the text is of known licences, less than %d %%", found.Percent, recognised)
	}
	return licences, nil
}

// choose returns the first of several licences to choose from that is allowed.
func choose(expression string, allowed []string) ([]string, error) {
	for choice := range strings.SplitSeq(expression, " OR ") {
		if slices.Contains(allowed, choice) {
			return []string{choice}, nil
		}
	}
	return nil, fmt.Errorf("licence %s is not allowed", expression)
}
