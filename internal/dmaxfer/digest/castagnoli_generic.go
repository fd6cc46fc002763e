//go:build !amd64

package digest

const canFold = false

func fold([]byte, uint32) uint32 { panic("digest: this processor does not fold") }

func foldCopy(_, _ []byte, _ uint32) uint32 { panic("digest: this processor does not fold") }
