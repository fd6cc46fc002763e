package config

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

func (o option) values() Values {
	if o.words == nil {
		return Values{Kind: o.offers}
	}
	return Values{Kind: WordValues, Words: o.words, List: o.several}
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

// textsOf returns the words of a type of their own.
func textsOf[T ~string](words ...T) []string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return texts
}
