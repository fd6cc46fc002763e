package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

const (
	partialSuffix = ".dma-copy-part"
	journalSuffix = ".dma-copy-journal" // the longest of the three
	backupSuffix  = ".dma-copy-backup"  // of a link that is about to become NAME~

	// maxNameLength is what file systems allow, in bytes.
	maxNameLength = 255
)

// stem is the hidden name that a file's partial and journal have in common. Of a name that leaves no room for their ends
// as much is kept as fits, and a digest of all of it: long names often differ at the end.
func stem(base string) string {
	room := maxNameLength - len(".") - len(journalSuffix)
	if len(base) <= room {
		return "." + base
	}
	sum := sha256.Sum256([]byte(base))
	digest := "-" + hex.EncodeToString(sum[:8])
	cut := base[:room-len(digest)]
	for !utf8.ValidString(cut) && utf8.ValidString(base) {
		cut = cut[:len(cut)-1]
	}
	return "." + cut + digest
}
