package config

import (
	"strings"
)

// ValueKind is what a shell completes the value of an option with.
type ValueKind int

const (
	NoValues          ValueKind = iota // numbers, patterns and texts: nothing can be offered
	WordValues                         // words that the option accepts
	FileValues                         // names of files and directories
	DirectoryValues                    // names of directories
	DeviceValues                       // devices of the driver
	RepresentorValues                  // representors of the driver's devices
)

// Values are the values that a shell can offer for an option.
type Values struct {
	Kind  ValueKind
	Words []string // of WordValues, in the order of the help; one that ends with a colon needs more text behind it
	List  bool     // several words are accepted, with commas in between
}

// ValuesOf returns what a shell can offer as the value of a flag of the command, by one of its long names.
func ValuesOf(s Settings, flag string) Values {
	opt, known := optionByName(s.options(), flag)
	if !known {
		return Values{}
	}
	return opt.values()
}

// values derives the values from the words of the option and from the placeholder of its value.
func (o option) values() Values {
	list := strings.HasSuffix(o.value, ",...") || o.value == "LIST" || isWord(strings.Split(o.value, ",")...)
	if words := o.choices(); len(words) > 0 {
		return Values{Kind: WordValues, Words: words, List: list}
	}
	switch {
	case o.value == "DEVICE" && o.name == "rep-pci":
		return Values{Kind: RepresentorValues}
	case o.value == "DEVICE":
		return Values{Kind: DeviceValues}
	case o.value == "DIR":
		return Values{Kind: DirectoryValues}
	case o.value == "FILE" || o.value == "PATH" || o.value == "MANIFEST":
		return Values{Kind: FileValues}
	}
	return Values{}
}

// choices returns the words that the option accepts: those of its table, or those that its placeholder spells out in
// lower case.
func (o option) choices() (words []string) {
	switch {
	case o.words != nil:
		return o.words()
	case strings.Contains(o.value, "="): // the words are parts of a value
		return nil
	}
	for word := range strings.FieldsFuncSeq(o.value, func(r rune) bool { return r == '|' || r == ',' }) {
		if isWord(word) {
			words = append(words, word)
		}
	}
	return words
}

// isWord reports whether there are several texts that stand for themselves in a placeholder, or one does: they consist
// of small letters and digits.
func isWord(texts ...string) bool {
	for _, text := range texts {
		if text == "" || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

// Exclusive returns sets of flags of the command of which only one can be given.
func Exclusive(s Settings) (sets [][]string) {
	table := s.options()
	for _, opt := range table {
		if opt.alias != "" {
			sets = append(sets, opt.names())
		}
	}
	for _, set := range [][]string{
		{"cores", "numa"}, {"expect", "files-from"}, {"files-from", "delete"}, {"to", "trust-first"}, {"to", "rep-pci"},
	} {
		_, first := optionByName(table, set[0])
		_, second := optionByName(table, set[1])
		if first && second {
			sets = append(sets, set)
		}
	}
	return sets
}

// textsOf returns a function for option.words that returns the words of a type of their own.
func textsOf[T ~string](words ...T) func() []string {
	return func() []string {
		texts := make([]string, len(words))
		for i, word := range words {
			texts[i] = string(word)
		}
		return texts
	}
}
