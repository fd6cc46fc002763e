package doca

import "github.com/dma-copy/dma-copy/internal/doca/internal/cabi"

// Installation is DOCA as it is installed here.
type Installation struct {
	Directory string   // where the libraries were loaded from
	Files     []string // the libraries' own files, behind all links
	Version   string   // of the libraries, as they say it themselves; "unknown" if they do not
}

// FindInstallation loads DOCA's libraries from directory, or from where they are usually installed if it is empty, looks
// at them and unloads them. *LoadError, ErrNoCgo. Implements: doca_version_runtime.
func FindInstallation(directory string) (Installation, error) {
	abi, found, err := cabi.OpenVendor(directory)
	if err != nil {
		return Installation{}, err
	}
	defer abi.Close()
	return Installation{Directory: found, Files: abi.Libraries(), Version: abi.Version()}, nil
}
