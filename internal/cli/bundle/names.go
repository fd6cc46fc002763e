package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The keys of events and log lines whose values are names of files.
var nameKeys = []string{
	"path", "file", "target", "peer_file", "claimed_file", "link", "remote", "names", "removed", "first", "file_base64",
}

var (
	// nameInText matches such a key with its value in a line of a text log.
	nameInText = regexp.MustCompile(`\b(?:` + strings.Join(nameKeys, "|") + `)=("(?:[^"\\]|\\.)*"|\S+)`)

	// nameInCommand matches the file of a command line.
	nameInCommand = regexp.MustCompile(`(?:^|\s)(?:-f|--file)[ =]('(?:[^'\\]|\\.)*'|[^\s"]+)`)

	// absolutePath matches absolute paths; group 1 is what stands in front.
	absolutePath = regexp.MustCompile(`(^|[\s"'=:,(])(/[^\s"':,;=()\\]+)`)

	// systemPath matches the paths of programs, devices and settings, which are the same on every machine.
	systemPath = regexp.MustCompile(`^/(sys|proc|dev|usr|opt|etc|lib|lib64|bin|sbin|run)(/|$)`)
)

// minFree is how many bytes a name must have to be replaced wherever it stands. A shorter one may be a word of its own,
// and is replaced behind an equals sign and in quotes only.
const minFree = 4

// Hider replaces the names of files by n1, n2 and so on, one for each element of a path, the same element by the same
// number in all parts. It takes for names the values under certain keys of events and log lines, the file of a command
// line, absolute paths outside the system's directories, and names that were added. A name that stands in free text
// alone is not recognized.
type Hider struct {
	names   []string          // that are to be replaced
	numbers map[string]string // by element of a path
}

// NewHider returns a Hider that knows no name yet.
func NewHider() *Hider { return &Hider{numbers: map[string]string{}} }

// Hide returns the parts with the names in them replaced, and the names of earlier calls.
func (h *Hider) Hide(parts []Part) []Part {
	for _, p := range parts {
		h.collect(p.Content)
	}
	replacer := h.replacer()
	result := slices.Clone(parts)
	for i := range result {
		result[i].Content = []byte(replacer.Replace(string(result[i].Content)))
	}
	return result
}

func (h *Hider) collect(content []byte) {
	for line := range bytes.Lines(content) {
		var event any
		if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &event) == nil {
			h.collectValues(event, false)
		}
		for _, match := range nameInText.FindAllSubmatch(line, -1) {
			h.Add(unquoted(string(match[1])))
		}
		for _, match := range nameInCommand.FindAllSubmatch(line, -1) {
			h.Add(strings.Trim(string(match[1]), "'"))
		}
		for _, match := range absolutePath.FindAllSubmatch(line, -1) {
			h.Add(strings.TrimRight(string(match[2]), "."))
		}
	}
}

// collectValues looks for names in a value of JSON; named: it stands under a key for them.
func (h *Hider) collectValues(value any, named bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, under := range value {
			h.collectValues(under, slices.Contains(nameKeys, key))
		}
	case []any:
		for _, element := range value {
			h.collectValues(element, named)
		}
	case string:
		if named {
			h.Add(value)
		}
	}
}

// Add adds the name or path of a file, unless it is a path of the system.
func (h *Hider) Add(name string) {
	if strings.Trim(name, "./:-") == "" || systemPath.MatchString(name) {
		return
	}
	h.names = append(h.names, name)
}

// replacer replaces all names that were collected, a longer one before one that it contains.
func (h *Hider) replacer() *strings.Replacer {
	slices.SortFunc(h.names, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, name := range slices.Compact(h.names) {
		number := h.pseudonym(name)
		for _, form := range forms(name) {
			if len(name) >= minFree {
				pairs = append(pairs, form, number)
				continue
			}
			for _, around := range [][2]string{{`"`, `"`}, {"'", "'"}, {"=", " "}, {"=", "\n"}} {
				pairs = append(pairs, around[0]+form+around[1], around[0]+number+around[1])
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// forms returns a name as it may stand in a part: as it is, and as in a string of JSON or Go.
func forms(name string) []string {
	inJSON, _ := json.Marshal(name) // a string always can be
	all := []string{name}
	for _, quoted := range []string{string(inJSON), strconv.Quote(name), strconv.QuoteToASCII(name)} {
		all = append(all, quoted[1:len(quoted)-1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pseudonym returns a path with the same number of elements.
func (h *Hider) pseudonym(name string) string {
	elements := strings.Split(name, "/")
	for i, element := range elements {
		if element == "" || path.Clean(element) == "." || element == ".." {
			continue
		}
		number, known := h.numbers[element]
		if !known {
			number = fmt.Sprintf("n%d", len(h.numbers)+1)
			h.numbers[element] = number
		}
		elements[i] = number
	}
	return strings.Join(elements, "/")
}

// unquoted returns the text of a string in quotes, or the argument if it is none.
func unquoted(text string) string {
	var inner string
	if json.Unmarshal([]byte(text), &inner) == nil {
		return inner
	}
	return text
}
