package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestMistakenVariables(t *testing.T) {
	environ := []string{
		"HOME=/root", "DMA_COPY=x", "dma_copy_wait=1", "DMA_COPY_DIGSET=", "DMA_COPY_TEST_HOLD=1", "PATH",
		"DMA_COPY_SOFT_DRI=/x", "DMA_COPY_DIGSET=xxh3", "DMA_COPY_TO=peers", "DMA_COPY_QUITE=true",
		"DMA_COPY_SOFT_DIR=/tmp/x", "DMA_COPY_WAIT=1d", "DMA_COPY_DEV_PCI=03:00.0", "DMA_COPY_CONFIG=x.json",
		"DMA_COPY_KEYS=/k", "DMA_COPY_CPUPROFILE=/p", "DMA_COPY_\x1b[2J=1", "DMA_COPY_ZZZZZZZZZZZZ=1=2",
		"DMA_COPY_COMMENT=c", "DMA_COPY_SHARE=a=/a",
	}
	want := []string{
		"environment variable DMA_COPY_COMMENT has no effect (give --comment on the command line)",
		"environment variable DMA_COPY_TO has no effect (give --to on the command line)",
		"unknown environment variable DMA_COPY_DIGSET (did you mean DMA_COPY_DIGEST?)",
		"unknown environment variable DMA_COPY_QUITE (did you mean DMA_COPY_QUIET?)",
		"unknown environment variable DMA_COPY_SOFT_DRI (did you mean DMA_COPY_SOFT_DIR?)",
		"unknown environment variable DMA_COPY_ZZZZZZZZZZZZ",
		`unknown environment variable DMA_COPY_\x1b[2J`,
	}
	slices.Sort(want)
	if got := every().MistakenVariables(environ); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestNoMistakeCostsNothing(t *testing.T) {
	environ := []string{"HOME=/root", "PATH=/bin", "LANG=C", "DMA_COPY_WAIT="}
	all := every()
	if allocations := testing.AllocsPerRun(100, func() { all.MistakenVariables(environ) }); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// Whatever variable the documents or the software device mention is known.
func TestDocumentedVariablesAreKnown(t *testing.T) {
	root := filepath.Join("..", "..")
	var files []string
	for _, dir := range []string{"docs", "softdoca"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if filepath.Ext(path) == ".c" || filepath.Ext(path) == ".md" {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	variable := regexp.MustCompile(`["` + "`" + ` ](DMA_COPY_[A-Z_]*[A-Z])["` + "`" + `= ]`)
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("environment variable DMA_COPY_DIGSET"), nil) // a sample of the warning
		for _, match := range variable.FindAllSubmatch(text, -1) {
			if notes := every().MistakenVariables([]string{string(match[1]) + "=x"}); notes != nil {
				t.Errorf("%s: %s", file, notes)
			}
		}
	}
}
