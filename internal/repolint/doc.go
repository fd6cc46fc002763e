// Package repolint has tests of the repository itself, and no code: which package may import which, which C file may
// include which, and whether the links of the pages lead somewhere. It imports nothing of the module.
package repolint
