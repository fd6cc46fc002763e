// Package disktest has file systems for tests: Memory, which does no I/O and so runs under testing/synctest, and which can be
// asked what a loss of power would leave of it; and Faulty, which lets any operation of another one fail.
package disktest
