package inventory

import (
	"runtime"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Versions is the output of version, described by docs/version.schema.json. Fields are only ever added. Having no
// driver is an answer, not an error.
type Versions struct {
	Version int         `json:"v"`
	Program string      `json:"version"`
	Go      string      `json:"go"`
	System  string      `json:"os"`
	Machine string      `json:"arch"`
	DOCA    string      `json:"doca_runtime,omitempty"` // left out where none is found, as is what follows of it
	Files   string      `json:"doca_libraries,omitempty"`
	Caution string      `json:"doca_caution,omitempty"` // of a release that is newer than this program
	UCX     *UCXVersion `json:"ucx,omitempty"`          // with --driver ucx
	Driver  *DriverUsed `json:"driver,omitempty"`       // with any other; --version has neither
}

// UCXVersion is the release of UCX, or why there is none.
type UCXVersion struct {
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// DriverUsed is the driver that a copy would use and why, or why there is none.
type DriverUsed struct {
	Name     string `json:"name,omitempty"`
	Hardware bool   `json:"hardware"`
	Version  string `json:"version,omitempty"`
	Reason   string `json:"reason"`
}

// versionsVersion changes only if a field of versions is removed or changes its meaning.
const versionsVersion = 1

// VersionsOf returns the versions of the program, which the caller knows, and of the DOCA libraries in a directory, or
// anywhere if it is empty.
func VersionsOf(program, libraryDir string) Versions {
	about := Versions{
		Version: versionsVersion, Program: program, Go: runtime.Version(), System: runtime.GOOS,
		Machine: runtime.GOARCH,
	}
	if found, err := doca.FindInstallation(libraryDir); err == nil {
		about.DOCA, about.Caution = quote.Printable(found.Version), quote.Printable(found.Caution)
		about.Files = quote.Printable(Libraries(found.Directory, found.Files))
	}
	return about
}

// FindUCX returns the release of UCX, or why there is none.
func FindUCX() *UCXVersion {
	found, err := TakeNetwork()
	if err != nil {
		return &UCXVersion{Reason: quote.Printable(err.Error())}
	}
	return &UCXVersion{Version: found.UCX}
}

// FindDriver returns the driver that a copy would use, or why there is none.
func FindDriver(options doca.Options) *DriverUsed {
	var used DriverUsed
	err := Look(options, func(driver *doca.Driver) error {
		used = DriverUsed{string(driver.Name()), driver.Hardware(), driver.Version(), driver.Reason()}
		return nil
	})
	if err != nil {
		used = DriverUsed{Reason: err.Error()}
	}
	used.Reason = quote.Printable(used.Reason)
	return &used
}
