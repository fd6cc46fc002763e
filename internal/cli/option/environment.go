package option

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The variables of this program start with variablePrefix, those of its tests with testPrefix.
const (
	variablePrefix = "DMA_COPY_"
	testPrefix     = variablePrefix + "TEST_"
)

// CompletionWaitVariable is how long a completion in a shell may take, a duration as those of the options.
const CompletionWaitVariable = variablePrefix + "COMPLETION_WAIT"

// otherVariables are the variables that belong to no option: siteVariable, and variables of the software device, of the
// kit (softdoca/docs) and of completion.
func otherVariables() []string {
	return []string{
		siteVariable, "DMA_COPY_SOFT_DIR", "DMA_COPY_SOFT_SIDE", "DMA_COPY_SOFT_LIMITS", "DMA_COPY_SOFT_USERS",
		"DMA_COPY_SOFT_FUNCTIONS", "DMA_COPY_SOFT_FAULTS", "DMA_COPY_SOFT_QUIRKS", "DMA_COPY_KIT_VERSION",
		CompletionWaitVariable, "DMA_COPY_COMPLETION_DESCRIPTIONS", "DMA_COPY_ACTIVE_HELP",
	}
}

// MistakenVariables returns a note for each variable that looks like one of this program but has no effect, given the
// environment as os.Environ returns it. An empty variable counts as not set.
func (c Commands) MistakenVariables(environ []string) []string {
	var notes []string
	for _, entry := range environ {
		if !strings.HasPrefix(entry, variablePrefix) {
			continue
		}
		name, value, _ := strings.Cut(entry, "=")
		if value == "" || slices.Contains(otherVariables(), name) || strings.HasPrefix(name, testPrefix) {
			continue
		}
		if note := c.mistakeIn(name); note != "" {
			notes = append(notes, note)
		}
	}
	slices.Sort(notes)
	return notes
}

// mistakeIn returns the note about a variable, empty for that of an option.
func (c Commands) mistakeIn(name string) string {
	known := otherVariables()
	flag := ""
	for _, s := range c {
		for _, opt := range s.Table() {
			for _, long := range opt.Names() {
				switch {
				case VariableName(long) == name && opt.FlagOnly:
					flag = long
				case VariableName(long) == name:
					return ""
				case !opt.FlagOnly && !opt.Hidden:
					known = append(known, VariableName(long))
				}
			}
		}
	}
	if flag != "" {
		return fmt.Sprintf("environment variable %s has no effect (give --%s on the command line)", name, flag)
	}
	note := "unknown environment variable " + quote.Bare(name)
	if guess := nearestVariable(name, known); guess != "" {
		note += fmt.Sprintf(" (did you mean %s?)", guess)
	}
	return note
}

// nearestVariable compares the names without their common prefix, which would make all of them similar.
func nearestVariable(name string, known []string) string {
	stems := make([]string, len(known))
	for i, variable := range known {
		stems[i] = strings.ToLower(strings.TrimPrefix(variable, variablePrefix))
	}
	guess := phrase.Nearest(strings.TrimPrefix(name, variablePrefix), stems)
	if guess == "" {
		return ""
	}
	return variablePrefix + strings.ToUpper(guess)
}
