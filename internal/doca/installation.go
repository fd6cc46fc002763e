package doca

import "github.com/dma-copy/dma-copy/internal/doca/internal/cabi"

// Installation describes the installed DOCA.
type Installation struct {
	Directory string   // from which the libraries were loaded
	Files     []string // the libraries, with links resolved
	Version   string   // of the libraries, as they say it themselves; "unknown" if they do not
}

// FindInstallation loads DOCA's libraries from directory, or from the usual directories if it is empty, and unloads
// them. Errors: *LoadError, ErrNoCgo. Implements: doca_version_runtime.
func FindInstallation(directory string) (Installation, error) {
	abi, found, err := cabi.OpenVendor(directory)
	if err != nil {
		return Installation{}, err
	}
	defer abi.Close()
	return Installation{Directory: found, Files: abi.Libraries(), Version: abi.Version()}, nil
}
