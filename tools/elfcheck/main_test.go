package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source has what the checks look for: a function with a buffer on its stack, and a copy of unknown length into it.
const source = `#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
	char buffer[64];
	memcpy(buffer, argv[0], strlen(argv[0]) + 1);
	puts(buffer);
	return argc;
}
`

// hardened are the flags of a binary in which nothing is wrong.
var hardened = []string{
	"-O2", "-fPIE", "-pie", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2",
	"-Wl,-z,relro,-z,now,-z,noexecstack",
}

func TestCheckFile(t *testing.T) {
	tests := []struct {
		name  string
		flags []string // in addition to hardened
		glibc string
		want  string // part of the error; none if empty
	}{
		{"hardened", nil, "2.34", ""},
		{"fixed addresses", []string{"-no-pie", "-fno-pie"}, "2.34", "is not position independent"},
		{"stack is executable", []string{"-Wl,-z,execstack"}, "2.34", "PT_GNU_STACK is writable and executable"},
		{"no relro", []string{"-Wl,-z,norelro"}, "2.34", "no PT_GNU_RELRO"},
		{"bound when called", []string{"-Wl,-z,lazy"}, "2.34", "not bound at the start"},
		{"rpath", []string{"-Wl,-rpath,/opt/lib"}, "2.34", `DT_RUNPATH ["/opt/lib"]`},
		{"stack is not checked", []string{"-fno-stack-protector"}, "2.34", "does not check its stack"},
		{"buffers are not checked", []string{"-U_FORTIFY_SOURCE"}, "2.34", "does not check buffers"},
		{"another library", []string{"-Wl,--no-as-needed", "-lm"}, "2.34", "needs the library libm.so.6"},
		{"later library", nil, "2.2", "later than 2.2"},
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.c"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			binary := filepath.Join(dir, "binary")
			arguments := slices.Concat([]string{"-o", binary, filepath.Join(dir, "main.c")}, hardened, test.flags)
			if output, err := exec.Command("gcc", arguments...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			err := checkFile(binary, test.glibc)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestLater(t *testing.T) {
	for _, test := range []struct {
		symbols, glibc string
		want           bool
	}{
		{"GLIBC_2.34", "2.34", false}, {"GLIBC_2.2.5", "2.34", false}, {"GLIBC_2.35", "2.34", true},
		{"GLIBC_2.4", "2.34", false}, {"GLIBC_3.0", "2.34", true}, {"GLIBC_ABI_DT_RELR", "2.34", true},
		{"GCC_3.0", "2.34", true},
	} {
		if got := later(test.symbols, test.glibc); got != test.want {
			t.Errorf("later(%q, %q) = %t", test.symbols, test.glibc, got)
		}
	}
}
