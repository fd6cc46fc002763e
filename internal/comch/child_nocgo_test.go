//go:build !cgo

package comch_test

func connectAndWait(string) {}
