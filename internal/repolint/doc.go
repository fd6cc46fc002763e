// Package repolint has tests of the repository itself, and no code: which package may import which, and whether the
// pages in docs agree with the sources. It imports nothing of the module.
package repolint
