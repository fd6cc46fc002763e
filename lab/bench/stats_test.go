package bench

import (
	"slices"
	"testing"
)

func TestSpread(t *testing.T) {
	cases := []struct {
		runs []float64
		want [4]float64 // p50, p99, min, max
	}{
		{[]float64{3}, [4]float64{3, 3, 3, 3}},
		{[]float64{4, 2}, [4]float64{3, 3.98, 2, 4}},
		{[]float64{5, 1, 3}, [4]float64{3, 4.96, 1, 5}},
		{[]float64{1, 100, 2, 4, 3}, [4]float64{3, 96.16, 1, 100}},
	}
	for _, tc := range cases {
		given := slices.Clone(tc.runs)
		s := spreadOf(tc.runs)
		for i, got := range []float64{s.P50, s.P99, s.Min, s.Max} {
			if d := got - tc.want[i]; d > 1e-9 || d < -1e-9 {
				t.Errorf("%v: %v, want %v", tc.runs, got, tc.want[i])
			}
		}
		if !slices.Equal(s.Runs, given) {
			t.Errorf("runs %v are not in their order %v", s.Runs, given)
		}
	}
}

func TestPercentileOfManyRuns(t *testing.T) {
	var runs []float64
	for i := range 101 {
		runs = append(runs, float64(100-i))
	}
	if s := spreadOf(runs); s.P25 != 25 || s.P50 != 50 || s.P75 != 75 || s.P99 != 99 {
		t.Errorf("p25 %v, p50 %v, p75 %v, p99 %v", s.P25, s.P50, s.P75, s.P99)
	}
}
