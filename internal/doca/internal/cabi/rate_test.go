//go:build cgo

package cabi

import (
	"math"
	"testing"
)

func TestRateIsRead(t *testing.T) {
	const all = 200_000_000_000
	double := math.Float64bits
	cases := []struct {
		name    string
		written uint64
		want    uint64
	}{
		{"a double", double(200), all},
		{"a double with a fraction", double(2.5), 2_500_000_000},
		{"a double that is not exact", double(0.1), 100_000_000},
		{"no link", 0, 0},
		{"not a number", double(math.NaN()), 0},
		{"infinity", double(math.Inf(1)), 0},
		{"less than nothing", double(-200), 0},
		{"a double beyond every rate", double(1.2e9), 0},
		{"an integer", all, all},
		{"a small integer", 10_000_000, 10_000_000},
		{"a large double", double(400), 2 * all},
		{"a small double", double(0.01), 10_000_000},
		{"neither", math.MaxUint64, 0},
	}
	for _, tc := range cases {
		if got := bitsPerSecond(tc.written); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}
