package bench

import (
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quantity"
)

// SizeText formats a size with its unit and a fraction only if there is one: 64 KiB, 1.5 GiB.
func SizeText(size int64) string {
	return strings.Replace(quantity.Bytes(uint64(size)), ".0 ", " ", 1)
}

// RateText formats a rate in GiB/s, so that the figures of a column can be compared.
func RateText(bytesPerSecond float64) string { return fmt.Sprintf("%.2f", bytesPerSecond/gibibyte) }
