package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version is the release, set by the linker: -ldflags "-X main.version=1.2.3". Without it the build info speaks.
var version string

// programVersion returns the linked release, else the module version that the Go toolchain recorded.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

// writeVersion prints our version and that of the DOCA libraries as docaRuntime finds them.
func writeVersion(w io.Writer, docaRuntime func() string) error {
	_, err := fmt.Fprintf(w, "dma-copy %s (%s %s/%s)\nDOCA runtime: %s\n",
		programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, docaRuntime())
	if err != nil {
		return fmt.Errorf("print the version: %w", err)
	}
	return nil
}
