package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// What a shell offers is what the option accepts: each word, and no word is left out that its error names.
func TestOfferedWordsAreTheChoices(t *testing.T) {
	offered := 0
	for command, s := range allSettings() {
		for _, opt := range s.options() {
			values := ValuesOf(s, opt.name)
			offered += len(values.Words)
			for _, word := range values.Words {
				if strings.HasSuffix(word, ":") {
					word += strings.Repeat("0", 2*len(checkedSum(t, opt, word)))
				}
				if err := opt.assign(word); err != nil {
					t.Errorf("%s --%s %s: %v", command, opt.name, word, err)
				}
			}
			err := opt.assign("?")
			if err == nil || opt.name == "path" { // which also knows those of other commands
				continue
			}
			if _, choices, lists := strings.Cut(err.Error(), "not one of the choices; give "); lists &&
				choices != phrase.Or(values.Words) {
				t.Errorf("%s --%s: the error names %s, a shell is offered %q", command, opt.name, choices, values.Words)
			}
		}
	}
	if offered < 200 {
		t.Errorf("%d words are offered", offered)
	}
}

// allSettings returns everySettings and those whose options concern the command line alone.
func allSettings() map[string]Settings {
	all := everySettings()
	all["keys"], all["status"] = &Keys{}, &Status{}
	return all
}

// checkedSum returns a digest of the length that the error for a wrong one asks for.
func checkedSum(t *testing.T, opt option, prefix string) []byte {
	t.Helper()
	for _, size := range []int{4, 8, 32} {
		if opt.assign(prefix+strings.Repeat("00", size)) == nil {
			return make([]byte, size)
		}
	}
	t.Fatalf("--%s accepts no digest after %s", opt.name, prefix)
	return nil
}

func TestValuesOf(t *testing.T) {
	for _, tc := range []struct {
		s    Settings
		flag string
		want Values
	}{
		{&Copy{}, "pci-addr", Values{Kind: DeviceValues}},
		{&Copy{}, "dev-pci", Values{Kind: DeviceValues}},
		{&Serve{}, "rep-pci", Values{Kind: RepresentorValues}},
		{&Copy{}, "file", Values{Kind: FileValues}},
		{&Verify{}, "check", Values{Kind: FileValues}},
		{&Copy{}, "doca-libdir", Values{Kind: DirectoryValues}},
		{&Copy{}, "chunk", Values{}},
		{&Copy{}, "overwrite", Values{}},
		{&Copy{}, "no-such-option", Values{}},
		{&Serve{}, "share", Values{}},
		{&Keys{}, "share", Values{}},
		{&Copy{}, "numa", Values{Kind: WordValues, Words: []string{"auto", "off"}}},
		{&Copy{}, "path", Values{Kind: WordValues, Words: []string{"auto", "dma", "fast"}}},
		{&Transfer{Kind: Push}, "path",
			Values{Kind: WordValues, Words: []string{"auto", "dma", "fast", "tls", "tcp", "am", "rma"}}},
		{&Serve{}, "path",
			Values{Kind: WordValues, Words: []string{"auto", "dma", "fast", "tls", "tcp", "am", "rma"}, List: true}},
		{&Copy{}, "preserve", Values{Kind: WordValues, Words: []string{"owner", "xattr", "links"}, List: true}},
	} {
		got := ValuesOf(tc.s, tc.flag)
		if got.Kind != tc.want.Kind || !slices.Equal(got.Words, tc.want.Words) ||
			len(got.Words) > 0 && got.List != tc.want.List {
			t.Errorf("%T --%s: %+v, want %+v", tc.s, tc.flag, got, tc.want)
		}
	}
}

// Flags that a shell offers only one of are refused together.
func TestExclusiveFlagsConflict(t *testing.T) {
	samples := map[string]string{
		"pci-addr": "b1:00.0", "dev-pci": "b1:00.1", "cores": "0", "numa": "0", "expect": "crc32c:1f0e22c4",
		"files-from": "list", "delete": "true", "to": "peers", "trust-first": "true", "rep-pci": "b1:00.1",
	}
	for _, kind := range []TransferKind{Push, Sync} {
		sets := Exclusive(&Transfer{Kind: kind})
		if len(sets) < 4 {
			t.Errorf("%s: %q", kind, sets)
		}
		for _, set := range sets {
			var line []string
			for _, name := range set {
				if samples[name] == "" {
					t.Fatalf("no value for --%s", name)
				}
				line = append(line, "--"+name+"="+samples[name])
			}
			s := &Transfer{Kind: kind}
			err := load(s, nil, line...)
			if err == nil {
				err = errors.Join(s.SetPaths([]string{"a", ":b/c"}), s.Validate())
			}
			if _, refused := errors.AsType[exit.Coder](err); !refused {
				t.Errorf("%s %q: %v", kind, line, err)
			}
		}
	}
}
