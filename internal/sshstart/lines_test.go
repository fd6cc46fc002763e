package sshstart

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/share"
)

func newKey(t *testing.T) identity.Public {
	t.Helper()
	key, err := identity.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return key.Public()
}

func TestRequest(t *testing.T) {
	want := Request{newKey(t), "~/photos", share.ReadWrite, true, "auto"}
	var line bytes.Buffer
	if err := want.write(&line); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRequest(&line); got != want || err != nil {
		t.Errorf("%+v: %v", got, err)
	}
}

func TestRefusedRequests(t *testing.T) {
	key := newKey(t).String()
	for _, line := range []string{
		"", "\n", "{}", `{"v":2}`, "hello\n", `{"v":1,"key":"x","directory":"/","access":"ro"}`,
		`{"v":1,"key":"` + key + `","directory":"x","access":"ro"}`,
		`{"v":1,"key":"` + key + `","directory":"","access":"ro"}`,
		`{"v":1,"key":"` + key + `","directory":"~root","access":"ro"}`,
		`{"v":1,"key":"` + key + `","directory":"/\u0000","access":"ro"}`,
		`{"v":1,"key":"` + key + `","directory":"/","access":"all"}`,
		`{"v":1,"key":"` + key + `","directory":"/` + strings.Repeat("x", maxLine) + `","access":"ro"}`,
	} {
		if r, err := ReadRequest(strings.NewReader(line)); exit.Code(err) != exit.Protocol {
			t.Errorf("%.80q: %+v, %v", line, r, err)
		}
	}
}

func TestAnswer(t *testing.T) {
	want := Answer{newKey(t), 4711, []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}}
	var line bytes.Buffer
	if err := want.Write(&line); err != nil {
		t.Fatal(err)
	}
	got, err := readAnswer(&line, "dpu")
	if err != nil || got.Key != want.Key || got.Port != want.Port || len(got.Addresses) != 2 ||
		got.Addresses[1] != want.Addresses[1] {
		t.Errorf("%+v: %v", got, err)
	}
}

func TestFailedAnswer(t *testing.T) {
	var line bytes.Buffer
	failure := exit.Errorf(exit.Target, "make room", "the disk is full%s", strings.Repeat("!", maxText))
	if err := WriteFailure(&line, failure); err != nil {
		t.Fatal(err)
	}
	_, err := readAnswer(&line, "dpu")
	if exit.Code(err) != exit.Target || !strings.HasPrefix(err.Error(), "dma-copy on dpu: the disk is full!") {
		t.Error(err)
	}
}

// FuzzAnswer feeds lines of a hostile far side. What is accepted is within the bounds.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"v":1,"key":"dma-copy-v1:KKjC4pTtwofPhSnf2RiyfgbI7NDhVxUvUaZUm4_wvaI","port":1,` +
		`"addresses":["::1"]}`))
	f.Add([]byte(`{"v":1,"code":2,"error":"x"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := readAnswer(bytes.NewReader(line), "dpu")
		switch {
		case err != nil && len(err.Error()) > 8*maxLine:
			t.Errorf("an error of %d bytes", len(err.Error()))
		case err == nil && (a.Port == 0 || len(a.Addresses) > maxAddresses || a.Key.Check() != nil):
			t.Errorf("accepted %+v", a)
		}
	})
}

// What ssh and the far side print is bounded, and without control characters.
func TestMessages(t *testing.T) {
	var m messages
	for range maxMessages + 5 {
		_, _ = m.Write([]byte("a\x1b[31m\r\n" + strings.Repeat("x", 2*maxMessage)))
		_, _ = m.Write([]byte("\n\n"))
	}
	_, _ = m.Write([]byte("last line"))
	var printed bytes.Buffer
	if last := m.last(&printed); last != "last line" {
		t.Errorf("last %q", last)
	}
	_, _ = m.Write([]byte("later\n"))
	text := printed.String()
	if strings.Count(text, "\n") != maxMessages || !strings.HasSuffix(text, "\nlater\n") ||
		strings.ContainsAny(text, "\x1b\r") || len(text) > maxMessages*(maxMessage+1) {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}
