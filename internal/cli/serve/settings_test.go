package serve

import "testing"

func TestMetricsAddresses(t *testing.T) {
	for _, text := range []string{"127.0.0.1:9469", "[::1]:0", "127.8.0.1:1", "unix:/run/x.sock"} {
		if got, err := parseMetrics(text); err != nil || got != text {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
