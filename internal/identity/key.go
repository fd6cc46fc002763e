// Package identity has the keys by which the two sides of a service know each other: the private key of this machine,
// the public keys that it trusts, and what each of them may do.
//
//	DIR/identity.pem         private key, mode 0600
//	DIR/trusted/NAME.key     a trusted public key and its limits
//
// Files and directories that another user could have written are refused. The package has no network and no clock.
package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sethvargo/go-diceware/diceware"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Key is a private Ed25519 key. It is not changed after it was made, and safe for concurrent use.
type Key struct{ private ed25519.PrivateKey }

// KeyFile is the name of the private key in a directory of keys.
const KeyFile = "identity.pem"

// maxKeyFile is the maximum size of the file of a private key, in bytes. One of ours has 119.
const maxKeyFile = 16 << 10

// pemType is the type of a PEM block with a private key in PKCS #8.
const pemType = "PRIVATE KEY"

// Generate returns a new random key.
func Generate() (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	return &Key{private}, nil
}

// loadKey reads a private key from a file of an open directory, or of unix.AT_FDCWD: PEM with PKCS #8, as Save and
// `openssl genpkey -algorithm ed25519` write it. The file belongs to a user, or to root. A symlink, and a file that
// another user can read or could have written, is refused with an UnsafeError.
func loadKey(at int, name, path string, user int) (*Key, error) {
	text, err := readFile(at, name, path, user, private, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	defer clear(text)
	key, err := parseKey(text)
	if err != nil {
		return nil, fmt.Errorf("private key: %s: %w", quote.Bare(path), err)
	}
	return key, nil
}

func parseKey(text []byte) (*Key, error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("not a PEM file")
	case block.Type != pemType:
		return nil, fmt.Errorf("a PEM block of type %q, not %q", block.Type, pemType)
	case len(rest) > 0:
		return nil, errors.New("data after the PEM block")
	}
	defer clear(block.Bytes)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("not a private key in PKCS #8: %w", err)
	}
	private, is := parsed.(ed25519.PrivateKey)
	if !is {
		return nil, fmt.Errorf("a %T, not an Ed25519 key", parsed)
	}
	return &Key{private}, nil
}

// Save writes the key to a new file of mode 0600 and flushes it to disk. A file that exists, even a dangling symlink,
// is an error that wraps fs.ErrExist. The directory must be one that other users cannot change (UnsafeError).
func (k *Key) Save(path string) error {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return fmt.Errorf("save the key: %w", err)
	}
	defer clear(der)
	text := pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
	defer clear(text)
	parent := filepath.Dir(path)
	dir, err := openDirectory(unix.AT_FDCWD, parent, parent, os.Geteuid(), true)
	if err != nil {
		return fmt.Errorf("save the key: %w", err)
	}
	defer func() { _ = dir.Close() }()
	if err := createFile(dir, filepath.Base(path), text, 0o600, false); err != nil {
		return fmt.Errorf("save the key: %w", err)
	}
	return nil
}

// Public returns the public key.
func (k *Key) Public() Public { return Public(k.private.Public().(ed25519.PublicKey)) }

// TLS returns a self-signed certificate for the key. Nothing in it but the key has a meaning; it does not expire, since
// the clock of a DPU may be wrong.
func (k *Key) TLS() (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "dma-copy"},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // no expiry, by RFC 5280
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.private.Public(), k.private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate of the key: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k.private}, nil
}

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
