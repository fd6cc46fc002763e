package option

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The variables of this program start with variablePrefix, the variables of its tests with testPrefix.
const (
	variablePrefix = "DMA_COPY_"
	testPrefix     = variablePrefix + "TEST_"
)

// CompletionWaitVariable is how long a completion in a shell may take, a duration as in the options.
const CompletionWaitVariable = variablePrefix + "COMPLETION_WAIT"

// Variable is an environment variable that belongs to no option.
type Variable struct {
	Name     string
	Text     string // without a period at the end
	Everyday bool   // in the help, too
}

// OtherVariables are the variables without an option: of parameter files, the software device, the kit and completion.
var OtherVariables = [...]Variable{
	{siteVariable, "Another file with defaults, in the shape of the --json file, than " + siteFile, true},
	{"DMA_COPY_SOFT_DIR", "Runtime directory of software devices; only its owner may write to it", true},
	{"DMA_COPY_SOFT_SIDE", "host, dpu or all: which side's devices exist", true},
	{"DMA_COPY_SOFT_LIMITS", "Limits of the software device, NAME=VALUE,...; softdoca/docs/SOFTDEVICE.md has them, " +
		"and more variables", true},
	{"DMA_COPY_SOFT_USERS", "Users, by number, whose processes may be the other side of a software device", false},
	{"DMA_COPY_SOFT_FUNCTIONS", "Functions of the software device beside its two PFs: vf, sf", false},
	{"DMA_COPY_SOFT_FAULTS", "Faults of the software device", false},
	{"DMA_COPY_SOFT_QUIRKS", "Behaviour of hardware that the software device imitates", false},
	{"DMA_COPY_KIT_VERSION", "Version of DOCA that the development kit reports", false},
	{CompletionWaitVariable, "Duration of a completion in a shell at most; default 1s", false},
	{"DMA_COPY_COMPLETION_DESCRIPTIONS", "0: candidates of a completion have no descriptions", false},
	{"DMA_COPY_ACTIVE_HELP", "For the scripts of completion", false},
}

func otherVariables() (names []string) {
	for _, v := range OtherVariables {
		names = append(names, v.Name)
	}
	return names
}

// OptionVariable is the variable of an option.
type OptionVariable struct{ Name, Flag, Help string }

// Variables returns the variables of the options of all commands, by name.
func (c Commands) Variables() (all []OptionVariable) {
	for _, opt := range c.table() {
		if opt.FlagOnly || opt.Hidden {
			continue
		}
		for _, name := range opt.Names() {
			all = append(all, OptionVariable{VariableName(name), name, opt.described().Sentence()})
		}
	}
	slices.SortFunc(all, func(a, b OptionVariable) int { return strings.Compare(a.Name, b.Name) })
	return all
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

// mistakeIn returns the note about a variable, empty for the variable of an option.
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
