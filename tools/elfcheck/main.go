// Command elfcheck checks that binaries are hardened, and that they run wherever the packages can be installed: they
// are position independent, memory is never writable and executable, the table of library functions is read-only after
// the start, C functions check their stack and buffers, and only the C library is needed, in a version that supported
// distributions have.
//
//	elfcheck -glibc VERSION BINARY...
package main

import (
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	glibc := flag.String("glibc", "", "`version` of the C library that a binary may need at most, such as 2.34")
	flag.Parse()
	if flag.NArg() == 0 || *glibc == "" {
		fmt.Fprintln(os.Stderr, "elfcheck: -glibc and binaries are needed")
		os.Exit(1)
	}
	failed := false
	for _, name := range flag.Args() {
		if err := checkFile(name, *glibc); err != nil {
			fmt.Fprintf(os.Stderr, "elfcheck: %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// checkFile checks a binary, and returns all that is wrong with it.
func checkFile(name, glibc string) error {
	file, err := elf.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return errors.Join(checkPosition(file), checkSegments(file), checkBinding(file), checkC(file),
		checkLibraries(file, glibc))
}

// checkPosition checks that the kernel can choose the addresses of the program.
func checkPosition(file *elf.File) error {
	if file.Type != elf.ET_DYN || dynamic(file, elf.DT_FLAGS_1)&uint64(elf.DF_1_PIE) == 0 {
		return errors.New("is not position independent: build with -buildmode=pie")
	}
	return nil
}

// checkSegments checks what the kernel maps.
func checkSegments(file *elf.File) error {
	var failed []error
	var stack, relro bool
	for _, segment := range file.Progs {
		stack = stack || segment.Type == elf.PT_GNU_STACK
		relro = relro || segment.Type == elf.PT_GNU_RELRO
		if segment.Flags&elf.PF_W != 0 && segment.Flags&elf.PF_X != 0 {
			failed = append(failed, fmt.Errorf("segment %s is writable and executable", segment.Type))
		}
	}
	if !stack {
		failed = append(failed, errors.New("has no PT_GNU_STACK, so its stack is executable"))
	}
	if !relro {
		failed = append(failed, errors.New("has no PT_GNU_RELRO: link with -z relro"))
	}
	return errors.Join(failed...)
}

// checkBinding checks the dynamic section: functions of libraries are bound at the start, so that their table can be
// made read-only, and libraries are not searched in directories that the binary names.
func checkBinding(file *elf.File) error {
	var failed []error
	flags := dynamic(file, elf.DT_FLAGS)
	if flags&uint64(elf.DF_BIND_NOW) == 0 && dynamic(file, elf.DT_FLAGS_1)&uint64(elf.DF_1_NOW) == 0 {
		failed = append(failed, errors.New("is not bound at the start: link with -z now"))
	}
	if flags&uint64(elf.DF_TEXTREL) != 0 {
		failed = append(failed, errors.New("has relocations in its code"))
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		paths, err := file.DynString(tag)
		if err != nil {
			failed = append(failed, fmt.Errorf("read %s: %w", tag, err))
		}
		if len(paths) > 0 {
			failed = append(failed, fmt.Errorf("searches libraries in directories of its own: %s %q", tag, paths))
		}
	}
	return errors.Join(failed...)
}

// dynamic returns the value of a tag, or 0 if there is none.
func dynamic(file *elf.File, tag elf.DynTag) uint64 {
	values, err := file.DynValue(tag)
	if err != nil || len(values) == 0 {
		return 0
	}
	return values[0]
}

// checkC checks that the C was compiled with -fstack-protector and _FORTIFY_SOURCE.
func checkC(file *elf.File) error {
	symbols, err := file.ImportedSymbols()
	if err != nil {
		return fmt.Errorf("read imported symbols: %w", err)
	}
	var protected, fortified bool
	for _, symbol := range symbols {
		protected = protected || symbol.Name == "__stack_chk_fail"
		fortified = fortified || strings.HasSuffix(symbol.Name, "_chk")
	}
	var failed []error
	if !protected {
		failed = append(failed, errors.New("does not check its stack: compile with -fstack-protector-strong"))
	}
	if !fortified {
		failed = append(failed, errors.New("does not check buffers: compile with -D_FORTIFY_SOURCE=2"))
	}
	return errors.Join(failed...)
}

// checkLibraries checks that only the C library is needed, in the given version or an earlier one.
func checkLibraries(file *elf.File, glibc string) error {
	needs, err := file.DynamicVersionNeeds()
	if err != nil {
		return fmt.Errorf("read versions of libraries: %w", err)
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read libraries: %w", err)
	}
	var failed []error
	for _, library := range libraries {
		if library != "libc.so.6" && !strings.HasPrefix(library, "ld-linux-") {
			failed = append(failed, fmt.Errorf("needs the library %s", library))
		}
	}
	for _, library := range needs {
		for _, need := range library.Needs {
			if later(need.Dep, glibc) {
				failed = append(failed, fmt.Errorf("needs %s of %s, later than %s", need.Dep, library.Name, glibc))
			}
		}
	}
	return errors.Join(failed...)
}

// later reports whether a version of symbols, such as GLIBC_2.34, is later than a version of the C library, or none.
func later(symbols, glibc string) bool {
	numbers, found := strings.CutPrefix(symbols, "GLIBC_")
	return !found || slices.Compare(parse(numbers), parse(glibc)) > 0
}

// parse returns the numbers of a version; what is none, as in GLIBC_ABI_DT_RELR, counts as later than all numbers.
func parse(version string) []int {
	var numbers []int
	for part := range strings.SplitSeq(version, ".") {
		number, err := strconv.Atoi(part)
		if err != nil {
			number = 1 << 30
		}
		numbers = append(numbers, number)
	}
	return numbers
}
