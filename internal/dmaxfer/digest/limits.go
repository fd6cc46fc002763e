package digest

// The sizes of this package, in bytes.
const (
	// readSize is the number of bytes of a stream that are read at once. The context is checked before each read.
	readSize = 1 << 20

	// zerosSize is the number of zeros of a hole that are hashed at once.
	zerosSize = 64 << 10

	// foldBlock is the number of bytes that one step of fold consumes. The assembler code depends on it.
	foldBlock = 256

	// minFold is the length from which folding is faster than crc32.Update.
	minFold = 4 * foldBlock
)
