package disk

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

const (
	partialSuffix = ".dma-copy-part"
	journalSuffix = ".dma-copy-journal" // the longest of the four
	backupSuffix  = ".dma-copy-backup"  // of a link that is about to become NAME~
	linkSuffix    = ".dma-copy-new"     // of a link that is about to become NAME

	// maxNameLength is what file systems allow, in bytes.
	maxNameLength = 255
)

// A tag has a beginning that hardly any other name has behind a dot, and digits: "file" must not take what belongs to
// "file.20261122".
const (
	tagStart  = "dma-"
	tagDigits = 8
)

// stem is the hidden name that a file's partial and journal have in common, with a tag where the names without one are
// another user's. Of a name that leaves no room for their ends as much is kept as fits, and a digest of all of it: long
// names often differ at the end.
func stem(base, tag string) string {
	if tag != "" {
		tag = "." + tag
	}
	limit := maxNameLength - len(".") - len(tag) - len(journalSuffix)
	if len(base) <= limit {
		return "." + base + tag
	}
	sum := sha256.Sum256([]byte(base))
	digest := "-" + hex.EncodeToString(sum[:8])
	cut := base[:limit-len(digest)]
	for !utf8.ValidString(cut) && utf8.ValidString(base) {
		cut = cut[:len(cut)-1]
	}
	return "." + cut + digest + tag
}

// newTag returns a random tag, so that other users cannot take its names beforehand.
func newTag() string {
	var random [tagDigits / 2]byte
	_, _ = rand.Read(random[:]) // never fails
	return tagStart + hex.EncodeToString(random[:])
}

// tagOf is the tag of the name of a partial file of base; found is false of any other name.
func tagOf(name, base string) (tag string, found bool) {
	whole, isPartial := strings.CutSuffix(name, partialSuffix)
	cut := len(whole) - len(tagStart) - tagDigits
	if !isPartial || cut < 1 || stem(base, whole[cut:]) != whole {
		return "", false
	}
	return whole[cut:], strings.HasPrefix(whole[cut:], tagStart)
}
