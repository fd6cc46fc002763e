// Package disktest has file systems for tests. Memory does no I/O, so that it can be used with testing/synctest, and
// can show what a loss of power would leave. Faulty makes any operation of another file system fail or hang.
package disktest
