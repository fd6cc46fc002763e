package config

import (
	"fmt"
	"slices"
	"strings"
)

// The layout of the help.
const (
	HelpWidth  = 80
	HelpColumn = 33 // where the descriptions of the flags start
)

// FlagUsage returns the lines of the help about the options of a command: those of some groups, or all. Hidden options
// are left out.
func FlagUsage(s Settings, groups ...FlagGroup) string {
	var text strings.Builder
	for _, opt := range s.options() {
		if !opt.hidden && (len(groups) == 0 || slices.Contains(groups, opt.group)) {
			writeFlag(&text, opt)
		}
	}
	return text.String()
}

func writeFlag(text *strings.Builder, opt option) {
	head := "  " + flagSpelling(opt.short, opt.name)
	if opt.alias != "" {
		head += ", " + strings.TrimSpace(flagSpelling(opt.aliasKey, opt.alias))
	}
	if value := opt.placeholder(); value != "" {
		head += " <" + value + ">"
	}
	if len(head) >= HelpColumn {
		head += "\n"
	}
	for line := range strings.SplitSeq(helpWithDefault(opt), "\n") {
		fmt.Fprintf(text, "%s%s%s\n", head, strings.Repeat(" ", columnGap(head)), line)
		head = ""
	}
}

// columnGap returns the number of spaces from the end of the head, which may end its line, to the column of the
// descriptions.
func columnGap(head string) int {
	return HelpColumn - len(head[strings.LastIndexByte(head, '\n')+1:])
}

func flagSpelling(short, name string) string {
	if short == "" {
		return "    --" + name
	}
	return "-" + short + ", --" + name
}

// helpWithDefault appends the default, on a line of its own where it does not fit the last one.
func helpWithDefault(opt option) string {
	if opt.fallback == "" || opt.isSwitch() {
		return opt.help
	}
	note := "(default " + opt.fallback + ")"
	lastLine := opt.help[strings.LastIndexByte(opt.help, '\n')+1:]
	if HelpColumn+len(lastLine)+len(" ")+len(note) > HelpWidth {
		return opt.help + "\n" + note
	}
	return opt.help + " " + note
}
