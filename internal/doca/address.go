package doca

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/dma-copy/dma-copy/internal/quote"
)

var pciAddress = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[01][0-9a-f]\.[0-7])$`)
})

// ParsePCIAddress returns the long lower-case form, "0000:b1:00.1", of a PCI address in either form. ErrBadAddress.
func ParsePCIAddress(text string) (string, error) {
	parts := pciAddress().FindStringSubmatch(strings.ToLower(text))
	if parts == nil {
		return "", fmt.Errorf("%s is %w: write it as b1:00.1 or 0000:b1:00.1", quote.Text(text), ErrBadAddress)
	}
	domain := parts[1]
	if domain == "" {
		domain = "0000"
	}
	return domain + ":" + parts[2], nil
}
