package contest

import "github.com/dma-copy/dma-copy/internal/doca"

// driverFlags returns the flags that make a copy use the same driver.
func driverFlags(options doca.Options) []string {
	if options.Choice != doca.ChooseDOCA {
		return []string{"--driver", "soft"}
	}
	flags := []string{"--driver", "doca"}
	if options.LibraryDir != "" {
		flags = append(flags, "--doca-libdir", options.LibraryDir)
	}
	return flags
}
