package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
)

// long is a text that the user typed, or that a file contains, by mistake.
var long = strings.Repeat("Z", 900<<10)

// checkShort expects a failure on one readable line that quotes at most count texts, each of at most quote.Longest
// characters.
func checkShort(t *testing.T, message string, texts int) {
	t.Helper()
	const readable = 1000 // a list of all keys is the longest that the program itself has to say
	shown := strings.Count(message, "Z")
	switch {
	case shown == 0:
		t.Errorf("the text is not shown: %.300s", message)
	case shown > texts*quote.Longest || utf8.RuneCountInString(message) > readable:
		t.Errorf("%d of %d characters are of the text: %.300s", shown, utf8.RuneCountInString(message), message)
	}
}

// The error of a long argument is one line.
func TestLongArgumentsAreCut(t *testing.T) {
	for _, args := range [][]string{
		{"--" + long}, {"-" + long}, {"--" + long + "=x"}, {"---" + long}, {"--help=" + long}, {long},
		{"-f", "x", long}, {"--", long},
		{"-pb1:00.1" + long, "-f", "x"}, {"-p", long, "-f", "x"}, {"-d", "y" + long[:10], "-p", long, "-f", "x"},
		{"devices", long}, {"devices", "--" + long}, {"help", long},
		{"--preserve", "owner," + long, "-f", "x"}, {"--expect", long + ":00", "-f", "x"},
		{"-f", "x", "--json", long}, {"-f", "x", "--json", "-" + long},
	} {
		t.Run(fmt.Sprintf("%.20q", args), func(t *testing.T) {
			got := invoke(nil, args...)
			if got.err == nil || exit.Code(got.err) != exit.Usage {
				t.Fatalf("error %v", got.err)
			}
			checkShort(t, report.Sentence(got.err), 2) // two devices; a list, and what is wrong in it
		})
	}
}

// The message of a bad number may contain it twice.
func TestLongNumbersAreCut(t *testing.T) {
	number := strings.Repeat("7", len(long))
	for _, name := range []string{"chunk", "depth", "bwlimit", "max-bytes", "cores", "numa", "wait", "log-level"} {
		message := report.Sentence(invoke(nil, "-f", "x", "--"+name, number).err)
		if shown := strings.Count(message, "7"); shown == 0 || shown > 2*quote.Longest {
			t.Errorf("--%s: %d digits: %.300s", name, shown, message)
		}
	}
	checkShort(t, strings.ReplaceAll(report.Sentence(invoke(nil, "-f", "x", "--cores", "9-"+number).err), "7", "Z"), 2)
}

// The error of a long text in a parameter file is one line, and so is that of a long file name.
func TestLongTextInParameterFilesIsCut(t *testing.T) {
	const inGroup = `{"doca_program_flags": `
	for name, text := range map[string]string{
		"group":      `{"` + long + `": {}}`,
		"key":        inGroup + `{"` + long + `": "x"}}`,
		"duplicate":  inGroup + `{"wait": "1s", "wait": "` + long + `"}}`,
		"kind":       inGroup + `{"` + long + `": 1}}`,
		"value":      inGroup + `{"wait": "` + long + `"}}`,
		"number":     inGroup + `{"chunk": ` + strings.Repeat("7", len(long)) + `}}`,
		"two values": inGroup + `{"pci-addr": "a", "dev-pci": "` + long[:60] + `"}}`,
		"literal":    inGroup + `{"file": ` + long + `}}`,
		"no value":   inGroup + `{"file" ` + long + `}}`,
		"escape":     inGroup + `{"file": "\` + long + `"}}`,
		"no JSON":    long,
	} {
		t.Run(name, func(t *testing.T) {
			folder := strings.Repeat("d", 200)
			inNewDir(t, "x", "")
			must(t, os.MkdirAll(folder+"/"+folder, 0o755))
			path := folder + "/" + folder + "/long.json"
			writeFile(t, path, text)
			message := report.Sentence(invoke(nil, "-j", path).err)
			shown := strings.Count(message, "Z") + strings.Count(message, "7")
			if n := utf8.RuneCountInString(message); n > 1000 || shown > 3*quote.Longest {
				t.Errorf("%d characters: %.400s", n, message)
			}
			if strings.Count(message, "d") > 200 || !strings.Contains(message, "long.json") {
				t.Errorf("the path is not cut: %.400s", message)
			}
		})
	}
}

// The error of a bad line in a manifest shows part of it.
func TestLongLinesOfAManifestAreCut(t *testing.T) {
	inNewDir(t, "sums", "xxh3:0000000000000000  "+long+"\n")
	writeFile(t, "bad", long+"\n")
	writeFile(t, "outside", "xxh3:0000000000000000  ../"+long+"\n")
	for _, name := range []string{"sums", "bad", "outside"} {
		var stdout, stderr strings.Builder
		stdio := root.Streams{Stdout: &stdout, Stderr: &stderr, Env: func(string) (string, bool) { return "", false }}
		err := program.New().Execute(t.Context(), stdio, []string{"verify", name})
		if err == nil {
			t.Fatal("accepted")
		}
		for line := range strings.Lines(stdout.String() + stderr.String() + report.Sentence(err) + "\n") {
			if strings.Count(line, "Z") > 2*quote.Longest {
				t.Errorf("%d characters: %.300s", len(line), line)
			}
		}
	}
}
