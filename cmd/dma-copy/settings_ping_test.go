package main

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/ping"
)

func TestPingSettings(t *testing.T) {
	longest := strings.Repeat("x", 1024)
	s := &ping.Settings{}
	if err := load(s, nil, "--text", longest, "--count", "1000000", "--size", "4MiB", "--path", "fast"); err != nil {
		t.Fatal(err)
	}
	if s.Text != longest || s.Count != 1_000_000 || s.Size != 4<<20 || s.Path != device.PathFast {
		t.Errorf("count %d, size %d, path %s", s.Count, s.Size, s.Path)
	}
	s = &ping.Settings{}
	if err := load(s, nil, "--size", "0"); err != nil || s.Size != 0 || s.Count != 100 || s.Text != "" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRefusedPingSettings(t *testing.T) {
	for line, why := range map[string]string{
		"--count 0":             "give a whole number from 1 to 1000000",
		"--count 1000001":       "give a whole number from 1 to 1000000",
		"--count 99999999999":   "give a whole number from 1 to 1000000",
		"--count -1":            "give a whole number from 1 to 1000000",
		"--count 010":           "give a whole number from 1 to 1000000",
		"--size 4194305":        "give at most 4MiB",
		"--size 5000000000":     "give at most 4MiB",
		"--size 99999999999999": "give at most 4MiB",
		"--size -1":             "give whole bytes such as 1048576, 512MiB or 2G",
		"--text a\xff":          "not UTF-8",
		"--path control":        "give auto, dma, fast, tls, tcp, am or rma",

		"--text " + strings.Repeat("x", 1025): "longer than 1024 bytes",
	} {
		if err := load(&ping.Settings{}, nil, strings.Fields(line)...); err == nil ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("%.40s: %v", line, err)
		}
	}
}
