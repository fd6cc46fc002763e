//go:build cgo

package cabi

import (
	"strings"
	"testing"
)

// functionKind queries an installation in which both functions have this body, or which has neither if it is empty.
func functionKind(t *testing.T, body string) (kind Function, index uint32, known bool) {
	t.Helper()
	const defines = "#define doca_devinfo_get_pci_func_type no_kind\n#define doca_devinfo_get_sf_index no_index\n"
	const include = `#include "doca_functions.def"`
	source := strings.Replace(releaseSource, include, defines+include, 1)
	if body != "" {
		source += "#undef doca_devinfo_get_pci_func_type\n#undef doca_devinfo_get_sf_index\n"
		for _, name := range []string{"doca_devinfo_get_pci_func_type", "doca_devinfo_get_sf_index"} {
			source += "doca_error_t " + name + "(const struct doca_devinfo *info, uint32_t *answer) { " + body + " }\n"
		}
	}
	directory := t.TempDir()
	buildRelease(t, directory, releaseLibraries[0], "3.3.0001", source)
	for _, library := range releaseLibraries[1:] {
		buildRelease(t, directory, library, "3.3.0001", releaseSource)
	}
	return mustLoad(t, directory).(*native).DevinfoFunction(nil)
}

// A release before 3.1 does not have the functions, and in a later one they may fail.
func TestFunctionKindOfReleases(t *testing.T) {
	cases := []struct {
		name, body string
		kind       Function
		index      uint32
		known      bool
	}{
		{"before 3.1", "", 0, 0, false},
		{"an SF", "*answer = 2; return DOCA_SUCCESS;", SubFunction, 2, true},
		{"a VF", "*answer = 1; return DOCA_SUCCESS;", VirtualFunction, 0, true},
		{"refused", "*answer = 2; return DOCA_ERROR_NOT_SUPPORTED;", 0, 0, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			kind, index, known := functionKind(t, tc.body)
			if kind != tc.kind || index != tc.index || known != tc.known {
				t.Errorf("kind %d, index %d, known %t", kind, index, known)
			}
		})
	}
}

// refusingSource is a library in which every function returns DOCA_ERROR_NOT_SUPPORTED and writes nothing.
var refusingSource = strings.Replace(releaseSource, "params { abort(); }",
	"params { union { doca_error_t error; __typeof__(ret) all; } no = {DOCA_ERROR_NOT_SUPPORTED}; return no.all; }", 1)

// A capability that the driver refuses or does not have is unknown.
func TestRefusedCapabilitiesAreUnknown(t *testing.T) {
	withoutLists := "#define doca_comch_consumer_cap_get_max_buf_list_len no_consumer_lists\n" +
		"#define doca_comch_producer_cap_get_max_buf_list_len no_producer_lists\n" + refusingSource
	for name, source := range map[string]string{"refused": refusingSource, "absent": withoutLists} {
		directory := t.TempDir()
		for _, library := range releaseLibraries {
			buildRelease(t, directory, library, "3.3.0001", source)
		}
		if got := mustLoad(t, directory).DevinfoCaps(nil); got != (DevinfoCaps{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
