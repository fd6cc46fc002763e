package cabi

import (
	"math"
	"testing"
)

func TestRateFormOfReleases(t *testing.T) {
	for release, want := range map[string]rateForm{
		"2.7.0085": rateInGigabits, "2.7.2001": rateInGigabits,
		"2.8.0082": rateInEither, "2.9.4005": rateInEither,
		"2.10.0087": rateInBits, "3.0.0058": rateInBits, "3.10.0001": rateInBits, "4.0.0001": rateInBits,
		"2.6.0058": rateUnknown, "2.5.0108": rateUnknown, "1.5.0": rateUnknown,
		"": rateUnknown, "unknown": rateUnknown, "2": rateUnknown, "soft 1": rateUnknown, "v2.10": rateUnknown,
		"2.": rateUnknown, "2.-9": rateUnknown, "99999999999999999999.1": rateUnknown,
	} {
		if got := rateFormOf(release); got != want {
			t.Errorf("%q: form %d, want %d", release, got, want)
		}
	}
}

func TestRateIsRead(t *testing.T) {
	const all = 200_000_000_000
	double := math.Float64bits
	cases := []struct {
		name    string
		form    rateForm
		written uint64
		want    uint64
	}{
		{"a double", rateInGigabits, double(200), all},
		{"a double with a fraction", rateInGigabits, double(2.5), 2_500_000_000},
		{"a double that is not exact", rateInGigabits, double(0.1), 100_000_000},
		{"a double, no link", rateInGigabits, 0, 0},
		{"an integer taken for a double", rateInGigabits, all, 0},
		{"not a number", rateInGigabits, double(math.NaN()), 0},
		{"infinity", rateInGigabits, double(math.Inf(1)), 0},
		{"less than nothing", rateInGigabits, double(-200), 0},
		{"a double beyond every rate", rateInGigabits, double(1.2e9), 0},
		{"an integer", rateInBits, all, all},
		{"an integer, no link", rateInBits, 0, 0},
		{"a double taken for an integer", rateInBits, double(200), 0},
		{"either: an integer", rateInEither, all, all},
		{"either: a small integer", rateInEither, 10_000_000, 10_000_000},
		{"either: a double", rateInEither, double(400), 2 * all},
		{"either: a small double", rateInEither, double(0.01), 10_000_000},
		{"either: no link", rateInEither, 0, 0},
		{"either: neither", rateInEither, math.MaxUint64, 0},
		{"unknown", rateUnknown, all, 0},
	}
	for _, tc := range cases {
		if got := tc.form.bitsPerSecond(tc.written); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}
