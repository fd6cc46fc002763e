package option

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Bounds on a parameter file. It is the user's own, but it may be the wrong file.
const (
	maxParamsSize     = 1 << 20
	maxParamsBrackets = 10_000           // the parser recurses once per open bracket
	maxParamsRead     = 10 * time.Second // for a pipe without a writer
)

// The groups of a parameter file in the form of DOCA's argument parser.
const (
	groupGeneral = "doca_general_flags"
	groupProgram = "doca_program_flags"
	groupDPDK    = "doca_dpdk_flags"
)

// The groups that only this program has.
const (
	GroupServe = "serve" // the options of serve, with precedence over groupProgram
	groupPeers = "peers"
)

// given is a value as the user wrote it, and its origin: "--wait", "DMA_COPY_WAIT" or "params.json:7: wait".
type given struct {
	text   string
	origin string
	option string  // for an item of a list: the option by which it was given
	items  []given // for a list, in the order in which they were given; text is empty then
}

// layer holds the values of one origin by the key of the option.
type layer map[string]given

// add stores a value, or appends it to the list of the option. An option given by both of its names must have the same
// value.
func (l layer) add(opt Option, value given) error {
	if opt.List != "" {
		value.option = opt.Name
		l[opt.List] = given{items: append(l[opt.List].items, value)}
		return nil
	}
	earlier, ok := l[opt.Name]
	if ok && earlier.text != value.text {
		return exit.Usagef("%s %s and %s %s differ: both name the same thing, so give one of them",
			earlier.origin, quote.Text(earlier.text), value.origin, quote.Text(value.text))
	}
	l[opt.Name] = value
	return nil
}

// params is what a parameter file holds.
type params struct {
	layer layer // without GroupServe
	serve layer // GroupServe alone
	peers Peers
	notes []string // input without effect, each for one line of the log
}

// forCommand returns the values for a command: GroupServe is for serve only.
func (p params) forCommand(s Settings) layer {
	if _, is := s.(grouped); is && p.layer != nil {
		maps.Copy(p.layer, p.serve)
	}
	return p.layer
}

// paramsFile reads one parameter file.
type paramsFile struct {
	params
	path  string
	text  []byte
	all   Commands
	table []Option // of all commands
}

// loadParams reads the parameter file at path, which origin named. Everything in the file is checked, whether or not a
// flag overrides it later. With an error it returns the values in front of the error.
func (c Commands) loadParams(path, origin string) (params, error) {
	text, err := readParams(path)
	if err != nil {
		return params{}, exit.Usagef("%s %s: %w; name a readable parameter file", origin, quote.Text(path), err)
	}
	file := c.newParamsFile(path, text)
	err = file.parse()
	return file.params, err
}

func (c Commands) newParamsFile(path string, text []byte) paramsFile {
	return paramsFile{params{layer: layer{}, serve: layer{}, peers: Peers{}}, path, text, c, c.table()}
}

// readParams opens without blocking, so that a FIFO without a writer reads as empty instead of blocking.
func readParams(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close() // only read
	// Regular files take no deadline and need none.
	if err := file.SetReadDeadline(time.Now().Add(maxParamsRead)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, withoutPath(err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxParamsSize+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	return text, checkParamsText(text)
}

func checkParamsText(text []byte) error {
	switch {
	case len(text) > maxParamsSize:
		return fmt.Errorf("larger than %d bytes", maxParamsSize)
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("the file is empty")
	case !utf8.Valid(text):
		return errors.New("not UTF-8 text")
	case bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) > maxParamsBrackets:
		return fmt.Errorf("more than %d brackets", maxParamsBrackets)
	}
	return nil
}

// withoutPath returns the cause of a file error without the path, which the message has already.
func withoutPath(err error) error {
	if pathError, ok := errors.AsType[*os.PathError](err); ok {
		return pathError.Err
	}
	return err
}

func (f *paramsFile) parse() error {
	root, err := hujson.Parse(f.text)
	if err != nil {
		return f.syntaxError(err)
	}
	groups, ok := root.Value.(*hujson.Object)
	if !ok {
		return f.failAt(root, "the file must hold one object with the groups %s, not %s",
			phrase.Or(paramsGroups()), kindNames[root.Value.Kind()])
	}
	return f.eachMember(groups, "the file", f.readGroup)
}

func (f *paramsFile) readGroup(name string, where, value hujson.Value) error {
	if !slices.Contains(paramsGroups(), name) {
		return f.failAt(where, "unknown group %s: %s", quote.Text(name), f.hint(name, paramsGroups()))
	}
	members, ok := value.Value.(*hujson.Object)
	if !ok {
		return f.failAt(value, "%s must be an object, not %s", name, kindNames[value.Value.Kind()])
	}
	switch name {
	case groupDPDK:
		f.notes = append(f.notes,
			fmt.Sprintf("%s of %s is ignored: dma-copy does not run on DPDK", name, quote.Bare(f.path)))
		return nil
	case groupPeers:
		return f.eachMember(members, name, f.readPeer)
	}
	of := paramsKeys{name, f.layer, f.table, func(opt Option) bool { return opt.FileGroup() == name }}
	if name == GroupServe {
		of = paramsKeys{name, f.serve, blank(f.all.owner(name)).Table(),
			func(opt Option) bool { return opt.JSON != JSONNone }}
	}
	return f.eachMember(members, name, func(key string, where, value hujson.Value) error {
		return f.readKey(of, key, where, value)
	})
}

// paramsKeys are the keys that a group of the file may have.
type paramsKeys struct {
	group string
	layer layer // takes their values
	table []Option
	holds func(Option) bool // whether an option of the table may be in the group
}

func (k paramsKeys) keys() (names []string) {
	for _, opt := range k.table {
		if k.holds(opt) {
			names = append(names, opt.Names()...)
		}
	}
	return names
}

func (f *paramsFile) readKey(of paramsKeys, key string, where, value hujson.Value) error {
	group := of.group
	opt, ok := ByName(of.table, key)
	if !ok || !of.holds(opt) {
		return f.failAt(where, "unknown key %s in %s: %s", quote.Text(key), group, f.hint(key, of.keys()))
	}
	if !strings.ContainsRune(opt.JSON.kinds, rune(value.Value.Kind())) {
		return f.failAt(value, "%s in %s must be %s, not %s", quote.Text(key), group, opt.JSON.wanted,
			kindNames[value.Value.Kind()])
	}
	if array, is := value.Value.(*hujson.Array); is {
		return f.addArray(of, opt, key, array)
	}
	return f.addValue(of.layer, opt, key, where, value)
}

// addArray stores the strings of an array for the option. An empty one replaces the list of a lower origin, too.
func (f *paramsFile) addArray(of paramsKeys, opt Option, key string, array *hujson.Array) error {
	if of.layer[opt.List].items == nil {
		of.layer[opt.List] = given{items: []given{}}
	}
	for _, element := range array.Elements {
		if element.Value.Kind() != '"' {
			return f.failAt(element, "%s in %s must be an array of strings, not of %s", quote.Text(key), of.group,
				kindNames[element.Value.Kind()])
		}
		if err := f.addValue(of.layer, opt, key, element, element); err != nil {
			return err
		}
	}
	return nil
}

// addValue stores a literal for the option; where is what an error points to.
func (f *paramsFile) addValue(to layer, opt Option, key string, where, value hujson.Value) error {
	entry := given{
		text:   value.Value.(hujson.Literal).String(),
		origin: fmt.Sprintf("%s: %s", f.position(where), key),
	}
	if err := opt.Assign(entry.text); err != nil {
		return badValue(entry, err)
	}
	return to.add(opt, entry)
}

// eachMember visits an object in order and refuses a second member of the same name.
func (f *paramsFile) eachMember(
	object *hujson.Object, in string, visit func(name string, where, value hujson.Value) error,
) error {
	seen := make(map[string]bool, len(object.Members))
	for _, member := range object.Members {
		name := member.Name.Value.(hujson.Literal).String()
		if seen[name] {
			return f.failAt(member.Name, "duplicate key %s in %s: keep one of them", quote.Text(name), in)
		}
		seen[name] = true
		if err := visit(name, member.Name, member.Value); err != nil {
			return err
		}
	}
	return nil
}

// FileGroup returns the group of the file that the option belongs to, "" if it cannot be in the file.
func (o Option) FileGroup() string {
	switch {
	case o.JSON == JSONNone:
		return ""
	case o.Group == DOCAFlags:
		return groupGeneral
	case o.Group == ServeFlags:
		return GroupServe
	default:
		return groupProgram
	}
}

func paramsGroups() []string {
	return []string{groupGeneral, groupProgram, groupDPDK, GroupServe, groupPeers}
}

// hint returns what to use instead of an unknown group or key.
func (f *paramsFile) hint(name string, known []string) string {
	opt, isOption := ByName(f.table, name)
	switch home := opt.FileGroup(); {
	case isOption && home != "":
		return "it belongs in " + home
	case isOption:
		return "it goes on the command line"
	}
	if guess := phrase.Nearest(name, known); guess != "" {
		return fmt.Sprintf("did you mean %q?", guess)
	}
	if len(known) > maxListedKeys {
		return "use the flags in dma-copy --help"
	}
	return "use " + phrase.Or(known)
}

// maxListedKeys is how many keys an error lists.
const maxListedKeys = 20

// syntaxError puts the parser's line number in front, where editors look for it.
func (f *paramsFile) syntaxError(err error) error {
	var line, column int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
		return exit.Usagef("%s: %s; correct the JSON", quote.Bare(f.path), quote.Bare(err.Error()))
	}
	cause := errors.Unwrap(err)
	if errors.Is(cause, io.ErrUnexpectedEOF) {
		cause = errors.New("the file ends in the middle of a value")
	}
	// The parser quotes the bad text in full.
	return exit.Usagef("%s:%d: %s at column %d; correct the JSON", quote.Bare(f.path), line, quote.Bare(cause.Error()),
		column)
}

func (f *paramsFile) failAt(value hujson.Value, format string, args ...any) error {
	return exit.Usagef("%s: "+format, append([]any{f.position(value)}, args...)...)
}

func (f *paramsFile) position(value hujson.Value) string {
	line := 1 + bytes.Count(f.text[:value.StartOffset], []byte("\n"))
	return fmt.Sprintf("%s:%d", quote.Bare(f.path), line)
}

var kindNames = map[hujson.Kind]string{
	'n': "null", 't': "true or false", 'f': "true or false", '"': "a string", '0': "a number", '[': "an array",
	'{': "an object",
}
