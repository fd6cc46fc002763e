package bench

import "testing"

func TestQuantities(t *testing.T) {
	for got, want := range map[string]string{
		SizeText(64 << 10): "64 KiB", SizeText(1 << 20): "1 MiB", SizeText(3 << 29): "1.5 GiB",
		RateText(3 << 29): "1.50",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
