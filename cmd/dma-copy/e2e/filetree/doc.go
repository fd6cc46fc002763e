// Package filetree makes directory trees of several shapes and compares trees. Measurements make their sources with it,
// and measurements and tests verify copies with it. It uses no code of the copy program, so that a mistake there cannot
// hide one here.
//
// Paths are paths of the file system, so a tree must not be deeper than a path of 4096 bytes reaches.
package filetree
