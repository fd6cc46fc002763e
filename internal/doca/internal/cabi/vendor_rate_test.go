//go:build cgo

package cabi

import (
	"strings"
	"testing"
)

// rateSource is releaseSource with this body of doca_devinfo_get_active_rate, which sees rate as a void *.
func rateSource(body string) string {
	const name = "doca_devinfo_get_active_rate"
	own := "doca_error_t " + name + "(const struct doca_devinfo *info, void *rate) { " + body + " }\n"
	return "#define " + name + " without_a_body\n" + releaseSource + "#undef " + name + "\n" + own
}

// The library of each release writes the rate as that release's header says, and the result is the same.
func TestRateOfReleases(t *testing.T) {
	const (
		double  = `*(double *)rate = 200; return DOCA_SUCCESS;`
		integer = `*(uint64_t *)rate = 200000000000; return DOCA_SUCCESS;`
		known   = 200_000_000_000
	)
	cases := []struct {
		name, release, body string
		want                uint64
	}{
		{"before the change", "2.7.0085", double, known},
		{"after the change", "2.10.0087", integer, known},
		{"between, with a double", "2.9.4005", double, known},
		{"between, with an integer", "2.8.0082", integer, known},
		{"later", "3.3.0001", integer, known},
		{"refused", "2.10.0087", `*(uint64_t *)rate = 1; return DOCA_ERROR_DRIVER;`, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := rateThrough(t, tc.release, rateSource(tc.body)); got != tc.want {
				t.Errorf("%d bits per second, want %d", got, tc.want)
			}
		})
	}
}

// The function is experimental, so a release may drop it.
func TestReleaseWithoutRates(t *testing.T) {
	source := strings.ReplaceAll(releaseSource, "#include \"doca_functions.def\"",
		"#define doca_devinfo_get_active_rate under_another_name\n#include \"doca_functions.def\"")
	if got := rateThrough(t, "3.3.0001", source); got != 0 {
		t.Errorf("%d bits per second", got)
	}
}

// rateThrough queries an installation whose libdoca_common is made from source.
func rateThrough(t *testing.T, release, source string) uint64 {
	t.Helper()
	directory := t.TempDir()
	buildRelease(t, directory, releaseLibraries[0], release, source)
	for _, library := range releaseLibraries[1:] {
		buildRelease(t, directory, library, release, releaseSource)
	}
	return mustLoad(t, directory).(*native).activeRate(nil)
}
