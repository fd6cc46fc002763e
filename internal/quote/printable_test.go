package quote

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain text": "plain text", "a\nb": `a\nb`, "\x1b[2J": `\x1b[2J`, "b\u202e": `b\u202e`, "ä": "ä",
		`a\nb`: `a\nb`, "a\x9b2J": `a\x9b2J`, "\u009b2J": `\u009b2J`, "\xe4\xff": `\xe4\xff`, "\ufffd": "\ufffd",
	} {
		got := Printable(text)
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if again := Printable(got); again != got {
			t.Errorf("%q: %q, applied twice %q", text, got, again)
		}
	}
}
