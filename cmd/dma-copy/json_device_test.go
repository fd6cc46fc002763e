//go:build cgo

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
)

func TestVersionAsJSON(t *testing.T) {
	useSoftDevice(t, "all")
	for line, driver := range map[string]any{
		"version -o json --driver soft": "soft", "version -o json --driver doca --doca-libdir /nonexistent": nil,
	} {
		got := invoke(nil, words(line)...)
		must(t, got.err)
		document := checkDocument(t, "version.schema.json", got.stdout)
		if used := document["driver"].(map[string]any); used["name"] != driver || used["reason"] == "" {
			t.Errorf("%s: driver %v", line, used)
		}
		if !strings.HasPrefix(invoke(nil, "version").stdout, fmt.Sprintf("dma-copy %s (", document["version"])) {
			t.Errorf("%s: version %v", line, document["version"])
		}
	}
	got := invoke(map[string]string{"DMA_COPY_DRIVER": "hard"}, "--version", "-o", "json")
	must(t, got.err)
	if document := checkDocument(t, "version.schema.json", got.stdout); document["driver"] != nil {
		t.Errorf("--version: printed %s", got.stdout)
	}
	got = invoke(nil, "version", "-o", "json", "--driver", "ucx")
	must(t, got.err)
	if document := checkDocument(t, "version.schema.json", got.stdout); document["ucx"] == nil {
		t.Errorf("printed %s", got.stdout)
	}
}

func TestDoctorAsJSON(t *testing.T) {
	useSoftDevice(t, "all")
	t.Setenv("DMA_COPY_SOFT_QUIRKS", "") // which probes would find
	for line, code := range map[string]int{
		"doctor -o json --driver soft":               0,
		"doctor -o json --probe -p b1:00.1":          0,
		"doctor -o json --driver soft -p b9:00.0":    6,
		"doctor -q -o json --driver soft -p b9:00.0": 6,
	} {
		got := invoke(nil, words(line)...)
		document := checkDocument(t, "doctor.schema.json", got.stdout)
		if exit.Code(got.err) != code || fmt.Sprint(document["code"]) != fmt.Sprint(code) {
			t.Errorf("%s: exit code %d, document %v, want %d", line, exit.Code(got.err), document["code"], code)
		}
		if _, probed := document["probes"]; probed != strings.Contains(line, "--probe") {
			t.Errorf("%s: probes: %t", line, probed)
		}
		findings := document["findings"].([]any)
		failed := slices.DeleteFunc(slices.Clone(findings), func(finding any) bool {
			return finding.(map[string]any)["verdict"] != "fail"
		})
		onlyFailed := len(failed) == len(findings)
		if quiet := strings.Contains(line, "-q"); quiet != onlyFailed || len(failed) != min(code, 1) {
			t.Errorf("%s: %d findings, %d failed", line, len(findings), len(failed))
		}
	}
}
