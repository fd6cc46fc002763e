// Package bench measures the copy engine alone, from memory to memory. What it has in common with the contests is here,
// too: rounds in which all candidates take turns, the conditions of a record, and tables.
//
// A candidate that fails is reported, and the others continue. The package measures and reports; it tunes nothing.
package bench
