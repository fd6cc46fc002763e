package contest

import "testing"

func TestQuantities(t *testing.T) {
	for got, want := range map[string]string{
		secondsText(0): "", secondsText(12.345e-6): "12.3 us", secondsText(0.9996): "1.00 s",
		secondsText(0.1234): "123 ms", secondsText(123.4): "123 s", ratioText(0): "", ratioText(0.456): "0.46",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
