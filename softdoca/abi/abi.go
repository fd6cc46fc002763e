// Package abi declares in C what DOCA's libraries and the software device have in common: DOCA's types (doca_abi.h),
// the one list of its functions (doca_functions.def) and the table of function pointers that both fill (ops.h). It has
// nothing to link and must not import any other package of this module. Packages with C compile with -I on this
// directory, and import the package so that a change of its files rebuilds them: the Go command does not watch include
// directories.
package abi

import (
	"embed"

	"github.com/dma-copy/dma-copy/internal/exit"
)

// ErrNoCgo is returned by every Open of a program built with CGO_ENABLED=0.
var ErrNoCgo = exit.NewReason(exit.Device, "", "this dma-copy was built without cgo and has no device layer: "+
	"rebuild it with CGO_ENABLED=1 and a C compiler")

// Declarations are the files that C code includes.
//
//go:embed *.h *.def
var Declarations embed.FS
