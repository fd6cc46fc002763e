package doca

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// Installation describes the installed DOCA.
type Installation struct {
	Directory string   // from which the libraries were loaded
	Files     []string // the libraries, with links resolved
	Version   string   // of the libraries, as they say it themselves; "unknown" if they do not
	Caution   string   // as Driver.Caution
}

// FindInstallation loads DOCA's libraries from directory, or from the usual directories if it is empty, and unloads
// them. Errors: *LoadError, ErrNoCgo. Implements: doca_version_runtime.
func FindInstallation(directory string) (Installation, error) {
	abi, found, err := cabi.OpenVendor(directory)
	if err != nil {
		return Installation{}, err
	}
	defer abi.Close()
	return Installation{Directory: found, Files: abi.Libraries(), Version: abi.Version(), Caution: caution(abi)}, nil
}

// The releases that this program was made for and tested with stand-ins of, the newest major version of their number,
// and the name of their libraries.
const (
	knownReleases = "2.7 to 3.5"
	newestMajor   = 3
	knownSoname   = "libdoca_common.so.2"
)

func caution(abi cabi.ABI) string {
	release, soname := abi.Version(), abi.Soname()
	major, _, _ := strings.Cut(release, ".")
	number, err := strconv.Atoi(major)
	newerRelease := err == nil && number > newestMajor
	newerLibrary := len(soname) == len(knownSoname) && soname > knownSoname
	if !newerRelease && !newerLibrary {
		return ""
	}
	return fmt.Sprintf("DOCA %s (%s) is newer than the releases that dma-copy was tested for, %s",
		release, soname, knownReleases)
}
