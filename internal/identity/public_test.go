package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func newKey(t testing.TB) *Key {
	t.Helper()
	key, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestPublicLineIsParsedAgain(t *testing.T) {
	key := newKey(t).Public()
	rapid.Check(t, func(t *rapid.T) {
		comment := rapid.StringMatching(`([!-~ä]([ -~ä]{0,100}[!-~ä])?)?`).Draw(t, "comment")
		line, err := key.Line(comment)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{line, " \t" + line + "\r\n"} {
			got, gotComment, err := ParsePublic(text)
			if err != nil || got != key || gotComment != comment {
				t.Fatalf("%q became %s, %q, %v", text, got, gotComment, err)
			}
		}
	})
}

func TestPublicLinesRefused(t *testing.T) {
	good := newKey(t).Public().String()
	for name, line := range map[string]string{
		"empty":              "",
		"another version":    "dma-copy-v2:" + good[len(LinePrefix):],
		"an SSH key":         "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA root@dpu",
		"no key":             LinePrefix,
		"cut":                good[:len(good)-1],
		"longer":             good + "A",
		"padded":             good + "=",
		"standard base64":    LinePrefix + strings.Repeat("/+", 21) + "A",
		"bits too many":      LinePrefix + strings.Repeat("A", 42) + "B",
		"two lines":          good + "\n" + good,
		"a break in the key": good[:20] + "\n" + good[20:],
		"a control code":     good + " \x1b[31m",
		"not UTF-8":          good + " \xff",
		"long":               good + " " + strings.Repeat("x", MaxLine),
		"zeros":              LinePrefix + strings.Repeat("A", 43),
	} {
		t.Run(name, func(t *testing.T) {
			if key, comment, err := ParsePublic(line); err == nil {
				t.Errorf("accepted as %s with comment %q", key, comment)
			}
		})
	}
	if _, err := newKey(t).Public().Line("two\nlines"); err == nil {
		t.Error("a comment of two lines was accepted")
	}
}

func TestPublicFromRefuses(t *testing.T) {
	if _, err := PublicFrom(make(ed25519.PublicKey, 31)); err == nil {
		t.Error("31 bytes were accepted")
	}
	if _, err := PublicFrom(make(ed25519.PublicKey, 32)); !errors.Is(err, ErrWeak) {
		t.Errorf("zeros: %v", err)
	}
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := PublicFrom(public); err != nil || string(got[:]) != string(public) {
		t.Errorf("a key became %s, %v", got, err)
	}
}

// For some of the weak keys a signature of zeros is valid, regardless of the message; the list has all encodings of y
// for which that can happen: those of the curve's points whose order divides 8.
func TestWeakKeys(t *testing.T) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	for _, encoded := range smallOrder {
		for _, sign := range []byte{0, 0x80} {
			var key Public
			copy(key[:], encoded)
			key[31] |= sign
			if err := key.Check(); !errors.Is(err, ErrWeak) {
				t.Errorf("%x: %v", key, err)
			}
		}
		y := new(big.Int).SetBytes(reversed(encoded))
		if y.Mod(y, p); !hasSmallOrder(y, p) {
			t.Errorf("%x is not the y of a point of small order", encoded)
		}
	}
	if n := len(smallOrder); n != 5+2 { // y = 0, 1, -1 and two of order 8; 0 and 1 also as p and p+1
		t.Errorf("%d encodings", n)
	}
	if !ed25519.Verify(ed25519.PublicKey(smallOrder[1]), []byte("any message"), identitySignature()) {
		t.Error("the signature that anybody can make is not valid, so what is tested here?")
	}
}

func reversed(text string) []byte {
	b := []byte(text)
	for i := range len(b) / 2 {
		b[i], b[len(b)-1-i] = b[len(b)-1-i], b[i]
	}
	return b
}

// hasSmallOrder reports whether doubling a point with this y three times gives y = 1, the neutral point. With
// -x² + y² = 1 + dx²y², the y of the double is (y² + x²) / (1 - dx²y²).
func hasSmallOrder(y, p *big.Int) bool {
	d := new(big.Int).ModInverse(big.NewInt(121666), p)
	d.Mul(d, big.NewInt(-121665)).Mod(d, p)
	one := big.NewInt(1)
	for range 3 {
		y2 := new(big.Int).Mul(y, y)
		x2 := new(big.Int).Add(one, new(big.Int).Mul(d, y2)) // x² = (y² - 1) / (1 + dy²)
		x2.ModInverse(x2.Mod(x2, p), p).Mul(x2, new(big.Int).Sub(y2, one)).Mod(x2, p)
		over := new(big.Int).Sub(one, new(big.Int).Mul(d, new(big.Int).Mul(x2, y2)))
		y = new(big.Int).Add(y2, x2)
		y.Mul(y, over.ModInverse(over.Mod(over, p), p)).Mod(y, p)
	}
	return y.Cmp(one) == 0
}

// identitySignature is valid for every message under the key that is the neutral point: R = neutral, S = 0.
func identitySignature() []byte {
	signature := make([]byte, ed25519.SignatureSize)
	signature[0] = 1
	return signature
}

// The words of a key must be the same on every machine and with every release.
func TestWords(t *testing.T) {
	var key Public
	copy(key[:], "a key that is the same everywhere")
	const want = "briar elevating theorize rebuild turtle floral"
	if got := key.Words(); got != want {
		t.Errorf("words %q, want %q", got, want)
	}
	key[0]++
	if key.Words() == want {
		t.Error("another key has the same words")
	}
	list := sha256.New()
	seen := make(map[string]bool)
	for i := range wordsInList {
		word := wordAt(i)
		if word == "" || seen[word] {
			t.Fatalf("word %d is %q, empty or there twice", i, word)
		}
		seen[word] = true
		_, _ = fmt.Fprintln(list, word)
	}
	const wantList = "6d557f0693958fb5e650b68b5bee585eb82cf4da32965505c789e924743bc522"
	if got := fmt.Sprintf("%x", list.Sum(nil)); got != wantList {
		t.Errorf("the list of words has changed, and with it the words of all keys: %s", got)
	}
}
