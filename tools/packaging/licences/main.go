// Command licences checks the licences of all modules that are linked into a program against an allow list, and writes
// their texts and a bill of materials (SBOM) for those who redistribute the program. It works offline, from the module
// cache. The working directory is in the module of the program.
//
//	licences -allow FILE [-notices FILE] [-sbom FILE -version VERSION] [-arch ARCH,...] PACKAGE
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// options are the command line.
type options struct {
	allow, notices, sbom, version, arch, program string
}

func main() {
	var opts options
	flag.StringVar(&opts.allow, "allow", "", "`file` with the SPDX identifiers of allowed licences, one a line")
	flag.StringVar(&opts.notices, "notices", "", "`file` to write with the texts of all licences")
	flag.StringVar(&opts.sbom, "sbom", "", "`file` to write with a bill of materials in CycloneDX JSON")
	flag.StringVar(&opts.version, "version", "", "`version` of the program in the bill of materials")
	flag.StringVar(&opts.arch, "arch", "amd64,arm64", "`architectures` whose modules count")
	flag.Parse()
	opts.program = flag.Arg(0)
	if err := run(opts); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(opts options) error {
	if opts.program == "" || opts.allow == "" {
		return errors.New("the package of a program and -allow are needed")
	}
	list, err := os.ReadFile(opts.allow)
	if err != nil {
		return err
	}
	modules, err := linkedModules(opts.program, strings.Split(opts.arch, ","))
	if err != nil {
		return err
	}
	if err := check(modules, parseAllowList(string(list))); err != nil {
		return fmt.Errorf("%w (remove the module, or add the licence to %s)", err, opts.allow)
	}
	if opts.notices != "" {
		if err := os.WriteFile(opts.notices, notices(modules), 0o644); err != nil {
			return err
		}
	}
	if opts.sbom != "" {
		return writeSBOM(opts.sbom, opts.version, modules)
	}
	return nil
}
