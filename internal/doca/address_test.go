package doca_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

func TestParsePCIAddress(t *testing.T) {
	for text, want := range map[string]string{
		"b1:00.0":      "0000:b1:00.0",
		"B1:00.1":      "0000:b1:00.1",
		"0000:b1:00.1": "0000:b1:00.1",
		"0000:B1:00.1": "0000:b1:00.1",
		"abCD:ef:1F.7": "abcd:ef:1f.7",
		"00:00.0":      "0000:00:00.0",
	} {
		got, err := doca.ParsePCIAddress(text)
		if err != nil || got != want {
			t.Errorf("ParsePCIAddress(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestParsePCIAddressRefuses(t *testing.T) {
	for _, text := range []string{
		"", "b1", "b1:00", "b1:00.", "b1:00.8", "b1:20.0", "b1:0.0", "1:00.0", "g1:00.0", "b1:00:0", "b1.00.0",
		"00:b1:00.0", "00000:b1:00.0", "0000:b1:00.00", " b1:00.0", "b1:00.0 ", "b1:00.0\n", "\u212a1:00.0",
	} {
		got, err := doca.ParsePCIAddress(text)
		if !errors.Is(err, doca.ErrBadAddress) || got != "" {
			t.Errorf("ParsePCIAddress(%q) = %q, %v; want ErrBadAddress", text, got, err)
		} else if !strings.Contains(err.Error(), "0000:b1:00.1") {
			t.Errorf("%q gives no example", err)
		}
	}
}
