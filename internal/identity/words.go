package identity

import (
	"crypto/sha256"
	"math/big"
	"strings"

	"github.com/sethvargo/go-diceware/diceware"
)

// wordCount is the number of fingerprint words. With 7776 words to choose from they stand for 77 bits of the hash.
const wordCount = 6

// wordLabel keeps the hash of the words apart from other hashes of keys.
const wordLabel = "dma-copy fingerprint words v1\x00"

// Words returns the fingerprint of the key: six English words, separated by blanks, that are the same on every machine.
// People compare them; programs compare keys.
func (p Public) Words() string {
	hash := sha256.Sum256(append([]byte(wordLabel), p[:]...))
	rest, word := new(big.Int).SetBytes(hash[:]), new(big.Int)
	words := make([]string, wordCount)
	for i := range words {
		rest.DivMod(rest, big.NewInt(wordsInList), word)
		words[i] = wordAt(int(word.Int64()))
	}
	return strings.Join(words, " ")
}

const (
	dice        = 5 // of one word
	wordsInList = 6 * 6 * 6 * 6 * 6
)

// wordAt returns a word of the list by its index. The library numbers the words by the dice that somebody rolls.
func wordAt(index int) string {
	rolls := 0
	for power := wordsInList / 6; power > 0; power /= 6 {
		rolls = rolls*10 + index/power%6 + 1
	}
	return diceware.WordListEffLarge().WordAt(rolls)
}
