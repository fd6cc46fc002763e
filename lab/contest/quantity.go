package contest

import (
	"fmt"
	"math"
)

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
