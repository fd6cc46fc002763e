package config

import (
	"cmp"
	"strings"
	"time"
)

// option is one thing that a command can be told, bound to the field of the settings that takes its value. Flags, keys
// of the parameter file, environment variables, defaults and help all follow from the tables of options.
type option struct {
	group    FlagGroup
	name     string // long flag, key of the parameter file, and stem of the variable
	short    string // one letter, or empty
	alias    string // second long name with the same meaning, or empty
	aliasKey string // one letter for the alias
	value    string // placeholder of the value in the help; empty for a switch, and where it is the words
	fallback string // the default, spelled as on the command line; empty: none
	json     jsonShape
	words    []string                // that the value may be; nil: any text
	several  bool                    // the value is a list of such words, with commas
	offers   ValueKind               // what a shell completes the value with, where it is no word
	list     string                  // list that the option appends to, maybe with others; empty: a single value
	assign   func(text string) error // sets the field that the option is bound to, or appends to it
	help     string
	hidden   bool // for developers of the program: not in the help, and never suggested
	flagOnly bool // neither a file nor the environment has it
}

// FlagGroup is the block of the help, and the group of the parameter file, that an option belongs to.
type FlagGroup int

const (
	DOCAFlags    FlagGroup = iota // general flags that every DOCA program has
	ProgramFlags                  // flags of DOCA's own DMA copy program
	AddedFlags                    // flags that only this program has
	NativeFlags                   // and those of them that it needs on both sides
	ServeFlags                    // flags that only the daemon has
)

// jsonShape is the JSON types that an option accepts in the parameter file.
type jsonShape struct {
	kinds  string // the accepted kinds, each by its first byte as hujson.Kind has it
	wanted string // the same for an error
}

var (
	jsonNone   = jsonShape{} // command line only
	jsonText   = jsonShape{`"`, "a string"}
	jsonNumber = jsonShape{`0"`, "a number or a string"}
	jsonSwitch = jsonShape{`tf`, "true or false"}
	jsonForced = jsonShape{`tf"`, `true, false or "force"`}
	jsonList   = jsonShape{`"[`, "a string or an array of strings"}
)

// everyOption returns the options of all commands, so that one parameter file serves all of them. Where several
// commands have an option of one name, it is that of a copy.
func everyOption() []option {
	var table []option
	for _, s := range []Settings{
		&Copy{}, &Bench{}, &Bundle{}, &Config{}, &Devices{}, &Doctor{}, &List{}, &Local{}, &MakeDir{}, &Ping{},
		&Remove{}, &Serve{}, &Status{}, &Transfer{Kind: Push}, &Transfer{Kind: Sync}, &Verify{}, &Version{},
	} {
		for _, opt := range s.options() {
			if _, known := optionByName(table, opt.name); !known {
				table = append(table, opt)
			}
		}
	}
	return table
}

// switchOption is an option without a value, which is off by default.
func switchOption(group FlagGroup, name string, on *bool, help string) option {
	return option{
		group: group, name: name, fallback: "false", json: jsonSwitch, assign: into(on, parseSwitch), help: help,
	}
}

// choiceOption is an option whose value is one of some words.
func choiceOption[T ~string](group FlagGroup, name string, choice *T, fallback T, help string, words ...T) option {
	return option{
		group: group, name: name, fallback: string(fallback), json: jsonText, words: textsOf(words...),
		assign: into(choice, parseOneOf(words...)), help: help,
	}
}

// eitherOption is an option whose value is one of two words: the default, and the one that sets the field.
func eitherOption(group FlagGroup, name string, field *bool, unset, set, help string) option {
	opt := choiceOption(group, name, new(string), unset, help, unset, set)
	parse := parseOneOf(unset, set)
	opt.assign = into(field, func(text string) (bool, error) {
		word, err := parse(text)
		return word == set, err
	})
	return opt
}

// countOption is an option whose value is a whole number between two limits.
func countOption[T int | int64 | uint32](
	group FlagGroup, name string, count *T, fallback string, least, most T, help string,
) option {
	return option{
		group: group, name: name, value: "COUNT", fallback: fallback, json: jsonNumber,
		assign: into(count, parseCount(least, most)), help: help,
	}
}

// sizeOption is an option whose value is a number of bytes.
func sizeOption(group FlagGroup, name string, size *int64, fallback, help string) option {
	return option{
		group: group, name: name, value: "SIZE", fallback: fallback, json: jsonNumber, assign: into(size, parseSize),
		help: help,
	}
}

// durationOption is an option whose value is a duration that a parser accepts.
func durationOption(
	group FlagGroup, name string, duration *time.Duration, fallback string,
	parse func(string) (time.Duration, error), help string,
) option {
	opt := textOption(group, name, "DURATION", duration, parse, help)
	opt.fallback = fallback
	return opt
}

// textOption is an option whose value is a text that parse turns into that of the field; value stands for it in the
// help.
func textOption[T any](
	group FlagGroup, name, value string, field *T, parse func(string) (T, error), help string,
) option {
	return option{group: group, name: name, value: value, json: jsonText, assign: into(field, parse), help: help}
}

// fileOption is an option whose value is the path of a file.
func fileOption(group FlagGroup, name, value string, path *string, help string) option {
	opt := textOption(group, name, value, path, parsePath, help)
	opt.offers = FileValues
	return opt
}

// directoryOption is an option whose value is the path of a directory.
func directoryOption(group FlagGroup, name string, path *string, help string) option {
	opt := fileOption(group, name, "DIR", path, help)
	opt.offers = DirectoryValues
	return opt
}

// withLetter returns an option that also has a short name.
func withLetter(letter string, o option) option {
	o.short = letter
	return o
}

// into returns an assignment that parses a text and stores the result in field.
func into[T any](field *T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		value, err := parse(text)
		if err != nil {
			return err
		}
		*field = value
		return nil
	}
}

// appending returns an assignment that parses a text and appends the result to field.
func appending[T any](field *[]T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		value, err := parse(text)
		if err != nil {
			return err
		}
		*field = append(*field, value)
		return nil
	}
}

// key returns the name under which the value of the option is merged: that of its list, or its own.
func (o option) key() string { return cmp.Or(o.list, o.name) }

// names returns the long names of the option, the alias last.
func (o option) names() []string {
	if o.alias == "" {
		return []string{o.name}
	}
	return []string{o.name, o.alias}
}

// placeholder returns what stands for the value in the help, empty for a switch.
func (o option) placeholder() string {
	if o.value == "" && o.words != nil {
		return strings.Join(o.words, "|")
	}
	return o.value
}

// isSwitch reports whether the option needs no value.
func (o option) isSwitch() bool { return o.json == jsonSwitch || o.json == jsonForced }

// optionByName returns an option by its name or its alias.
func optionByName(table []option, name string) (option, bool) {
	for i := range table { // without a copy of each option, which is large
		if name == table[i].name || name == table[i].alias && name != "" {
			return table[i], true
		}
	}
	return option{}, false
}

// variableName returns the environment variable of a long name: DMA_COPY_PCI_ADDR for pci-addr.
func variableName(name string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
