package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

func TestArchiveHasEachPart(t *testing.T) {
	parts := []Part{{"version.json", "versions", []byte("{}\n")}, {"peer/version.json", "its versions", nil}}
	var out bytes.Buffer
	at := time.Unix(1_700_000_000, 0)
	if err := Write(&out, "bundle", at, parts); err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(compressed)
	for _, want := range parts {
		header, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil || header.Name != "bundle/"+want.Name || !bytes.Equal(content, want.Content) ||
			!header.ModTime.Equal(at) {
			t.Errorf("%s at %v has %q, %v", header.Name, header.ModTime, content, err)
		}
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last part: %v", err)
	}
}

func TestEndOfAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	file, err := os.Create("log")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("the end"), MaxPart); err != nil { // the rest is a hole
		t.Fatal(err)
	}
	if err := errors.Join(file.Close(), unix.Mkfifo("fifo", 0o600)); err != nil {
		t.Fatal(err)
	}
	content, err := ReadEnd("log")
	if err != nil || len(content) != MaxPart || !bytes.HasSuffix(content, []byte("the end")) {
		t.Errorf("%d bytes, %v", len(content), err)
	}
	if _, err := ReadEnd("fifo"); err == nil {
		t.Error("a FIFO was read")
	}
}

func TestFactsOfNVIDIAOnly(t *testing.T) {
	root := fstest.MapFS{
		"etc/os-release": {Data: []byte("ID=debian")},
		"proc/modules":   {Data: []byte("mlx5_core 1 2\nsecret_module 1 0\n")},
		"proc/cpuinfo":   {Data: []byte("model name: A72\n\nprocessor: 1\n")},
		"etc/shadow":     {Data: []byte("root:hash")},
		"proc/sys/x":     {Data: []byte("x")},
		"opt/mellanox/doca/lib/aarch64-linux-gnu/libdoca_dma.so.2": {},
	}
	for address, vendor := range map[string]string{"0000:03:00.0": nvidia, "0000:04:00.0": "0x8086"} {
		function := "sys/bus/pci/devices/" + address
		root[function+"/vendor"] = &fstest.MapFile{Data: []byte(vendor + "\n")}
		root[function+"/current_link_speed"] = &fstest.MapFile{Data: []byte("32.0 GT/s PCIe\n")}
		root[function+"/net/p0/mtu"] = &fstest.MapFile{Data: []byte("1500")}
	}
	got := string(Machine(root))
	for _, want := range []string{
		"== /etc/os-release\nID=debian\n", "mlx5_core 1 2\n", "model name: A72\n",
		"== /sys/bus/pci/devices/0000:03:00.0/current_link_speed\n32.0 GT/s PCIe\n",
		"== /sys/bus/pci/devices/0000:03:00.0/net/p0\n", "libdoca_dma.so.2\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the facts lack %q:\n%s", want, got)
		}
	}
	for _, bad := range []string{"secret", "hash", "0000:04", "processor: 1"} {
		if strings.Contains(got, bad) {
			t.Errorf("the facts have %q", bad)
		}
	}
}

func TestNamesAreHidden(t *testing.T) {
	parts := []Part{
		{Name: "events", Content: []byte(
			`{"event":"file","path":"Lohn 2026/a","target":"/home/ada/in/Lohn 2026/a"}` + "\n" +
				`{"event":"failed","message":"source \"Lohn 2026/a\": permission denied"}` + "\n" +
				`{"event":"list","names":["tagebuch.txt","\u00fcber"]}` + "\n" +
				`{"event":"failed","message":"the target is a dangling symlink: dma-copy -f 'my diary'"}` +
				"\n")},
		{Name: "log", Content: []byte(`2026-01-01 DBG entry planned path="Lohn 2026/a" state=needed` + "\n" +
			"2026-01-01 DBG entry stored path=a bytes=1\n" +
			"2026-01-01 WRN cannot set times of tagebuch.txt in /home/ada/in: a reason; see /proc/self/limits\n")},
	}
	hidden := NewHider().Hide(parts)
	events, log := string(hidden[0].Content), string(hidden[1].Content)
	for _, bad := range []string{"Lohn", "tagebuch", "ada", "über", `\u00fcber`, "path=a ", "diary"} {
		if strings.Contains(events, bad) || strings.Contains(log, bad) {
			t.Errorf("%q is not hidden:\n%s%s", bad, events, log)
		}
	}
	for _, kept := range []string{`"event":"file"`, "permission denied"} {
		if !strings.Contains(events, kept) {
			t.Errorf("%q is gone from\n%s", kept, events)
		}
	}
	if !strings.Contains(log, ": a reason; see /proc/self/limits") || !strings.Contains(log, "state=needed") {
		t.Errorf("more than names is gone from\n%s", log)
	}
	// So it is in parts that follow later, here parts of the other side.
	later := NewHider()
	first := later.Hide([]Part{{Content: []byte(`{"path":"salaries.xls"}`)}})
	second := later.Hide([]Part{{Content: []byte("salaries.xls differs")}})
	if string(first[0].Content) != `{"path":"n1"}` || string(second[0].Content) != "n1 differs" {
		t.Errorf("%s and then %s", first[0].Content, second[0].Content)
	}
	// One name is one pseudonym everywhere, so that the story of a file can still be read.
	_, after, _ := strings.Cut(log, `path="`)
	name, _, _ := strings.Cut(after, `"`)
	if !strings.Contains(events, `"path":"`+name+`"`) || strings.Count(name, "/") != 1 {
		t.Errorf("the log has %q, the events are\n%s", name, events)
	}
	if string(parts[0].Content) == events {
		t.Error("the parts of the caller were changed")
	}
}

func TestPartsOfTheOtherSide(t *testing.T) {
	own := []Part{
		{Name: "version.json", Content: []byte(`{"version":"1"}`)},
		{Name: "machine.txt", Content: bytes.Repeat([]byte("ä\n"), 5000)},
		{Name: "kernel.log", Content: []byte("\xff")},
	}
	const limit = 2000
	packed := Pack(own, limit)
	if len(packed) > limit || !utf8.Valid(packed) {
		t.Fatalf("%d bytes, limit %d", len(packed), limit)
	}
	theirs, err := Unpack(packed)
	if err != nil || len(theirs) != len(own) {
		t.Fatalf("%v, %v", theirs, err)
	}
	if theirs[0].Name != "peer/version.json" || string(theirs[0].Content) != string(own[0].Content) {
		t.Errorf("the short part is %s: %q", theirs[0].Name, theirs[0].Content)
	}
	if !strings.HasSuffix(string(theirs[1].Content), cutMark) {
		t.Errorf("the long part ends with %q", theirs[1].Content[max(0, len(theirs[1].Content)-20):])
	}
}

func TestPartsThatAreRefused(t *testing.T) {
	for name, packed := range map[string]string{
		"no JSON":           "{",
		"another directory": `[{"name":"../../etc/passwd","text":""}]`,
		"an absolute name":  `[{"name":"/tmp/x.txt","text":""}]`,
		"twice":             `[{"name":"a.txt","text":""},{"name":"a.txt","text":""}]`,
		"an escape":         `[{"name":"a\u001b.txt","text":""}]`,
		"too many":          "[" + manyParts(maxParts+1) + "]",
	} {
		if parts, err := Unpack([]byte(packed)); err == nil {
			t.Errorf("%s: accepted as %v", name, parts)
		}
	}
	if _, err := Unpack([]byte("[" + manyParts(maxParts) + "]")); err != nil {
		t.Error(err)
	}
}

func manyParts(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(`{"name":"p%d.txt","text":""}`, i)
	}
	return strings.Join(parts, ",")
}
