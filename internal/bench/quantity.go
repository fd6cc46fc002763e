package bench

import (
	"fmt"
	"math"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quantity"
)

// sizeText formats a size with its unit and a fraction only if there is one: 64 KiB, 1.5 GiB.
func sizeText(size int64) string {
	return strings.Replace(quantity.Bytes(uint64(size)), ".0 ", " ", 1)
}

// rateText formats a rate in GiB/s, so that the figures of a column can be compared.
func rateText(bytesPerSecond float64) string { return fmt.Sprintf("%.2f", bytesPerSecond/gibibyte) }

// secondsText formats a duration with three significant digits and a suitable unit.
func secondsText(seconds float64) string {
	switch {
	case seconds <= 0:
		return ""
	case seconds < 999.5e-6:
		return digits(seconds*1e6) + " us"
	case seconds < 999.5e-3:
		return digits(seconds*1e3) + " ms"
	}
	return digits(seconds) + " s"
}

func digits(value float64) string {
	after := 2 - int(math.Floor(math.Log10(value)))
	return fmt.Sprintf("%.*f", min(max(after, 0), 2), value)
}

func ratioText(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", ratio)
}
