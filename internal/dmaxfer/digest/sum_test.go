package digest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// counting returns the input of BLAKE3's own test vectors.
func counting(length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

// Digests that other programs print for the same bytes.
func TestSumsOfOtherPrograms(t *testing.T) {
	cases := []struct {
		name string
		data []byte
		sums []string
	}{
		{"nothing", nil, []string{
			"crc32c:00000000", "xxh3:2d06800538d394c2",
			"blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
			"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		}},
		{"digits", []byte("123456789"), []string{
			"crc32c:e3069283", "xxh3:72dcb18b67a17dff",
			"blake3:b7d65b48420d1033cb2595293263b6f72eabee20d55e699d0df1973b3c9deed1",
			"sha256:15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
		}},
		{"many", counting(102400), []string{
			"crc32c:7957da17", "xxh3:1428e17f1cac2837",
			"blake3:bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085",
			"sha256:74588b7f0bcc354ac14d9cf199fa3a20c05f0c7293b9075b2f2e146e718de800",
		}},
	}
	for _, tc := range cases {
		for _, want := range tc.sums {
			sum, err := ParseSum(want)
			if err != nil {
				t.Fatal(err)
			}
			got, size, err := Of(t.Context(), sum.Algorithm(), bytes.NewReader(tc.data))
			if got != sum || got.String() != want || size != int64(len(tc.data)) || err != nil {
				t.Errorf("%s: %s of %d bytes, error %v, want %s", tc.name, got, size, err, want)
			}
		}
	}
}

func TestSumTravels(t *testing.T) {
	for _, a := range wire.Digests() {
		sum, _, err := Of(t.Context(), a, strings.NewReader("some bytes"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := NewSum(a, sum.Bytes()); got != sum || err != nil {
			t.Errorf("%s: %s, error %v, want %s", a, got, err, sum)
		}
		if parsed, err := ParseAlgorithm(a.String()); parsed != a || err != nil || len(sum.Bytes()) != a.Size() {
			t.Errorf("%s: parsed as %s, error %v, %d bytes", a, parsed, err, len(sum.Bytes()))
		}
	}
}

// The digest of a whole file is the same whether it comes from a stream or from the content and its checksum.
func TestSumOfContent(t *testing.T) {
	for _, a := range wire.Digests() {
		for _, length := range []int{0, 1, 63, 64, 4096, 100_000} {
			content := counting(length)
			want, _, err := Of(t.Context(), a, bytes.NewReader(content))
			if got := SumOf(a, content, Check(a, content)); got != want || err != nil {
				t.Errorf("%s of %d bytes: %s, want %s, error %v", a, length, got, want, err)
			}
		}
	}
}

// There are many small files. Their digest is their checksum, or computed by a hash that is reused.
func TestSumOfContentAllocatesNothing(t *testing.T) {
	content := counting(4096)
	for _, a := range wire.Digests() {
		check := Check(a, content)
		if got := testing.AllocsPerRun(100, func() { _ = SumOf(a, content, check) }); got != 0 {
			t.Errorf("%s: %v allocations", a, got)
		}
	}
}

// CopyTo fills as many bytes as the digest has, and leaves the others alone.
func TestSumIsCopied(t *testing.T) {
	for _, a := range wire.Digests() {
		sum := SumOf(a, counting(100), Check(a, counting(100)))
		target := bytes.Repeat([]byte{0xEE}, wire.MaxDigestSize+1)
		sum.CopyTo(target)
		if got := target[:a.Size()]; !bytes.Equal(got, sum.Bytes()) {
			t.Errorf("%s: %x, want %x", a, got, sum.Bytes())
		}
		if rest := target[a.Size():]; !bytes.Equal(rest, bytes.Repeat([]byte{0xEE}, len(rest))) {
			t.Errorf("%s: the bytes after it are %x", a, rest)
		}
	}
}

func TestSumsThatAreNone(t *testing.T) {
	if _, err := NewSum(Algorithm(len(wire.Digests())), nil); err == nil {
		t.Error("a sum of no algorithm")
	}
	if _, err := NewSum(XXH3, make([]byte, 7)); err == nil || err.Error() != "a xxh3 digest has 8 bytes, not 7" {
		t.Errorf("error %v", err)
	}
	cases := []struct{ text, sentence string }{
		{"", "not a digest; give ALGORITHM:HEX, such as crc32c:1f0e22c4"},
		{"1f0e22c4", "not a digest; give ALGORITHM:HEX, such as crc32c:1f0e22c4"},
		{"md5:00", `"md5" is not a digest; give one of none, crc32c, xxh3, blake3, sha256`},
		{"CRC32C:1f0e22c4", `"CRC32C" is not a digest; give one of none, crc32c, xxh3, blake3, sha256`},
		{"none:", "none has no digest; give another algorithm"},
		{"crc32c:1f0e22c", "a crc32c digest has 8 hexadecimal digits, not 7"},
		{"crc32c:", "a crc32c digest has 8 hexadecimal digits, not 0"},
		{"crc32c:1f0e22cg", "a crc32c digest has 8 hexadecimal digits, and nothing else"},
		{"xxh3:1f0e22c4", "a xxh3 digest has 16 hexadecimal digits, not 8"},
	}
	for _, tc := range cases {
		if _, err := ParseSum(tc.text); err == nil || err.Error() != tc.sentence {
			t.Errorf("%q: error %v, want %s", tc.text, err, tc.sentence)
		}
	}
}

func TestSumInCapitals(t *testing.T) {
	if sum, err := ParseSum("crc32c:1F0E22C4"); err != nil || sum.String() != "crc32c:1f0e22c4" {
		t.Errorf("%s, error %v", sum, err)
	}
}

func TestNumbersThatAreNoAlgorithm(t *testing.T) {
	for a := Algorithm(len(wire.Digests())); a != 0; a++ {
		if a.Known() || a.Ordered() || a.Size() != 0 || !strings.HasPrefix(a.String(), "digest ") {
			t.Errorf("%d: known %t, ordered %t, size %d, name %s", uint8(a), a.Known(), a.Ordered(), a.Size(), a)
		}
	}
}

func FuzzParseSum(f *testing.F) {
	f.Add("crc32c:1F0E22C4")
	f.Add("none:")
	f.Add("xxh3:2d06800538d394c2")
	f.Fuzz(func(t *testing.T, text string) {
		sum, err := ParseSum(text)
		if err != nil {
			return
		}
		name, digits, _ := strings.Cut(text, ":")
		if want := name + ":" + strings.ToLower(digits); sum.String() != want {
			t.Errorf("%q became %s", text, sum)
		}
	})
}
