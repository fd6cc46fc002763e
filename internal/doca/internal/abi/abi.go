// Package abi declares in C what DOCA's libraries and the software device have in common: DOCA's types (doca_abi.h),
// the one list of its functions (doca_functions.def) and the table of function pointers that both fill (ops.h). There
// is nothing to link. Packages with C compile with -I on this directory, and import the package so that a change of its
// files rebuilds them: of a directory that is only on an include path the Go command knows nothing.
package abi

import (
	"embed"
	"errors"
)

// ErrNoCgo is what every Open of a program built with CGO_ENABLED=0 returns.
var ErrNoCgo = errors.New("this dma-copy was built without cgo and has no device layer: " +
	"rebuild it with CGO_ENABLED=1 and a C compiler")

// Declarations are the files that C code includes.
//
//go:embed *.h *.def
var Declarations embed.FS
