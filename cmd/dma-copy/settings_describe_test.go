package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/keys"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/serve"
	"github.com/dma-copy/dma-copy/internal/cli/status"
	"github.com/dma-copy/dma-copy/internal/cli/transfer"
	"github.com/dma-copy/dma-copy/internal/cli/verify"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
)

// What a shell offers is what the option accepts: each word, and no word is left out that its error names.
func TestOfferedWordsAreTheChoices(t *testing.T) {
	offered := 0
	for command, s := range allSettings() {
		for _, opt := range s.Table() {
			values := option.ValuesOf(s, opt.Name)
			offered += len(values.Words)
			for _, word := range values.Words {
				if strings.HasSuffix(word, ":") {
					word += strings.Repeat("0", 2*len(checkedSum(t, opt, word)))
				}
				if err := opt.Assign(word); err != nil {
					t.Errorf("%s --%s %s: %v", command, opt.Name, word, err)
				}
			}
			err := opt.Assign("?")
			if err == nil || opt.Name == "path" { // which also knows those of other commands
				continue
			}
			if _, choices, lists := strings.Cut(err.Error(), "not one of the choices; give "); lists &&
				choices != phrase.Or(values.Words) {
				t.Errorf("%s --%s: the error names %s, a shell is offered %q", command, opt.Name, choices, values.Words)
			}
		}
	}
	if offered < 200 {
		t.Errorf("%d words are offered", offered)
	}
}

// allSettings returns everySettings and those whose options concern the command line alone.
func allSettings() map[string]option.Settings {
	all := everySettings()
	all["keys"], all["status"] = &keys.Settings{}, &status.Settings{}
	return all
}

// checkedSum returns a digest of the length that the error for a wrong one asks for.
func checkedSum(t *testing.T, opt option.Option, prefix string) []byte {
	t.Helper()
	for _, size := range []int{4, 8, 32} {
		if opt.Assign(prefix+strings.Repeat("00", size)) == nil {
			return make([]byte, size)
		}
	}
	t.Fatalf("--%s accepts no digest after %s", opt.Name, prefix)
	return nil
}

func TestValuesOf(t *testing.T) {
	for _, tc := range []struct {
		s    option.Settings
		flag string
		want option.Values
	}{
		{&copying.Settings{}, "pci-addr", option.Values{Kind: option.FoundValues}},
		{&copying.Settings{}, "dev-pci", option.Values{Kind: option.FoundValues}},
		{&serve.Settings{}, "rep-pci", option.Values{Kind: option.FoundValues}},
		{&copying.Settings{}, "file", option.Values{Kind: option.FileValues}},
		{&verify.Settings{}, "check", option.Values{Kind: option.FileValues}},
		{&copying.Settings{}, "doca-libdir", option.Values{Kind: option.DirectoryValues}},
		{&copying.Settings{}, "chunk", option.Values{}},
		{&copying.Settings{}, "overwrite", option.Values{}},
		{&copying.Settings{}, "no-such-option", option.Values{}},
		{&serve.Settings{}, "share", option.Values{}},
		{&keys.Settings{}, "share", option.Values{}},
		{&copying.Settings{}, "numa", option.Values{Kind: option.WordValues, Words: []string{"auto", "off"}}},
		{&copying.Settings{}, "path", option.Values{Kind: option.WordValues, Words: []string{"auto", "dma", "fast"}}},
		{&transfer.Settings{Kind: transfer.Push}, "path",
			option.Values{Kind: option.WordValues, Words: []string{"auto", "dma", "fast", "tls", "tcp", "am", "rma"}}},
		{&serve.Settings{}, "path",
			option.Values{Kind: option.WordValues, Words: []string{"auto", "dma", "fast", "tls", "tcp", "am", "rma"},
				List: true}},
		{&copying.Settings{}, "preserve", option.Values{Kind: option.WordValues, Words: []string{"owner", "xattr",
			"links", "all"}, List: true}},
	} {
		got := option.ValuesOf(tc.s, tc.flag)
		if (got.Find != nil) != (got.Kind == option.FoundValues) {
			t.Errorf("--%s: looked up: %t", tc.flag, got.Find != nil)
		}
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
	for _, kind := range []transfer.Kind{transfer.Push, transfer.Sync} {
		sets := option.Exclusive(&transfer.Settings{Kind: kind})
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
			s := &transfer.Settings{Kind: kind}
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
