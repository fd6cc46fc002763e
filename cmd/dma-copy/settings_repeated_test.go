package main

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/serve"
)

// A flag with one value is refused where it is given twice: one of the values would have no effect.
func TestRepeatedFlags(t *testing.T) {
	for line, want := range map[string]string{
		"-f a -f b":                      `--file is given twice, as "a" and "b": leave one of them out`,
		"-f a --file a":                  `--file is given twice, as "a" and "a": leave one of them out`,
		"-f a -f b -f c":                 `--file is given twice, as "a" and "b": leave one of them out`,
		"-f a --wait 1s -l 40 --wait=2s": `--wait is given twice, as "1s" and "2s": leave one of them out`,
		"-f a --overwrite --overwrite=false": `--overwrite is given twice, as "true" and "false": ` +
			"leave one of them out",
		"-f a --overwrite --overwrite":            "",
		"-f a --include b --include c":            "",
		"-f a --exclude b --exclude-from c -l 50": "",
	} {
		err := load(&copying.Settings{}, nil, words(line)...)
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	if err := load(&serve.Settings{}, nil, words("--share a=/a --share b=/b")...); err != nil {
		t.Errorf("a flag that may be repeated: %v", err)
	}
}
