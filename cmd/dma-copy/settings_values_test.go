package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
)

// Fractions of sizes and days mean the same in a flag, a variable and a parameter file.
func TestQuantitiesOfEveryOrigin(t *testing.T) {
	want := defaults(func(s *copying.Settings) {
		s.Options.MaxBytes, s.Options.Bandwidth, s.Timeout = 3<<29, 1<<19, 60*time.Hour
	})
	inNewDir(t, "params.json", `{"doca_program_flags": {
		"max-bytes": "1.5GiB", "bwlimit": 524288, "timeout": "2d12h"}}`)
	variables := map[string]string{
		"DMA_COPY_MAX_BYTES": "1.5GiB", "DMA_COPY_BWLIMIT": "0.5M", "DMA_COPY_TIMEOUT": "2d12h",
	}
	for origin, got := range map[string]copying.Settings{
		"flags":       mustLoad(t, nil, "-f", "x", "--max-bytes", "1.5GiB", "--bwlimit", "0.5M", "--timeout", "2.5d"),
		"environment": mustLoad(t, variables, "-f", "x"),
		"file":        mustLoad(t, nil, "-f", "x", "-j", "params.json"),
	} {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", origin, got, want)
		}
	}
	writeFile(t, "params.json", `{"doca_program_flags": {"max-bytes": 1.5}}`)
	mustRefuse(t, loadCopy(nil, "-f", "x", "-j", "params.json"), `params.json:1: max-bytes "1.5": `+
		"not a whole number of bytes; give whole bytes such as 1048576, 512MiB or 2G")
	mustRefuse(t, loadCopy(map[string]string{"DMA_COPY_WAIT": "15251w"}, "-f", "x"),
		`DMA_COPY_WAIT "15251w": longer than 292 years; give a duration such as 5m or 7d`)
}
