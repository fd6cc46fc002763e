package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/serve"
	"github.com/dma-copy/dma-copy/internal/cli/transfer"
)

// originsOf returns the values of a command's settings, one line each.
func originsOf(t *testing.T, s option.Settings, variables map[string]string, line string) []string {
	t.Helper()
	flags := pflag.NewFlagSet("dma-copy", pflag.ContinueOnError)
	option.Declare(flags, s)
	if err := flags.Parse(words(line)); err != nil {
		t.Fatal(err)
	}
	values, err := every().Origins(flags, func(name string) (string, bool) {
		return variables[name],
			variables[name] != ""
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, v := range values {
		lines = append(lines, v.Name+" "+v.Text+" "+v.Origin)
	}
	return lines
}

func TestOrigins(t *testing.T) {
	inNewDir(t, "site.json", "{\"doca_program_flags\": {\n\"timeout\": \"3s\", \"wait\": \"1s\"},\n\n"+
		`"peers": {"dpu": {"device": "b1:00.1", "key": "k"}}}`)
	writeFile(t, "params.json", "{\"serve\": {\"share\": [\"a=/a\",\n\"b=/b\"]}}")
	variables := map[string]string{
		"DMA_COPY_CONFIG": "site.json", "DMA_COPY_WAIT": "2s", "DMA_COPY_DEV_PCI": "mlx5_0",
		"DMA_COPY_EXCLUDE": "a\nb",
	}
	got := originsOf(t, &transfer.Settings{}, variables, "--depth 3 --include c --exclude d")
	for _, want := range []string{
		"depth 3 --depth", "wait 2s DMA_COPY_WAIT", "timeout 3s site.json:2", "chunk 0 default",
		"pci-addr mlx5_0 DMA_COPY_DEV_PCI", "include c --include", "exclude d --exclude", "rep-pci  default",
		"peers.dpu.device b1:00.1 site.json:4", "peers.dpu.key k site.json:4",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, strings.Join(got, "\n"))
		}
	}
	if slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "cpuprofile") }) {
		t.Error("a hidden option is shown")
	}
	got = originsOf(t, &serve.Settings{}, variables, "-j params.json")
	for _, want := range []string{"share a=/a params.json:1", "share b=/b params.json:2", "json params.json --json"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, strings.Join(got, "\n"))
		}
	}
	if slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "peers.") }) {
		t.Error("serve has no peers")
	}
}

func TestCheckFile(t *testing.T) {
	for name, want := range map[string]option.CheckedFile{
		"serve.json":  {Shares: 2},
		"client.json": {Peers: []string{"dpu"}},
		"params.json": {},
	} {
		got, err := every().CheckFile(filepath.Join(configs, name))
		if err != nil || got.Shares != want.Shares || !slices.Equal(got.Peers, want.Peers) || got.Values == 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	inNewDir(t, "bad.json", "{\"doca_program_flags\": {\n\"wiat\": \"1s\"}}")
	writeFile(t, "twice.json", `{"serve": {"share": ["a=/a", "a=/b"]}}`)
	writeFile(t, "notes.json", `{"doca_dpdk_flags": {}}`)
	for file, sentence := range map[string]string{
		"bad.json":   `bad.json:2: unknown key "wiat" in doca_program_flags: did you mean "wait"?`,
		"twice.json": "--share a is given twice: give each share a name of its own",
		"no.json":    `FILE "no.json": no such file or directory; name a readable parameter file`,
	} {
		if _, err := every().CheckFile(file); err == nil || err.Error() != sentence {
			t.Errorf("%s: %v", file, err)
		}
	}
	if got, err := every().CheckFile("notes.json"); err != nil || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
