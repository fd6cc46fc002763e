package share_test

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/share"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestShares(t *testing.T) {
	for text, want := range map[string]share.Share{
		"inbox=/srv/inbox":     {Name: "inbox", Path: "/srv/inbox", Access: share.Read},
		"inbox=/srv/inbox,ro":  {Name: "inbox", Path: "/srv/inbox", Access: share.Read},
		"0.a_b-c=rel/path,wo":  {Name: "0.a_b-c", Path: "rel/path", Access: share.Write},
		"_=/,rw":               {Name: "_", Path: "/", Access: share.ReadWrite},
		"a=/x,wo,privileged":   {Name: "a", Path: "/x", Access: share.Write, Privileged: true},
		"a=/x=y,nooverwrite":   {Name: "a", Path: "/x=y", Access: share.Read, NoOverwrite: true},
		"a=/x,max-bytes=1KiB":  {Name: "a", Path: "/x", Access: share.Read, MaxBytes: 1024},
		"a=/x,max-bytes=1.5G":  {Name: "a", Path: "/x", Access: share.Read, MaxBytes: 3 << 29},
		"a=/x,max-bytes=2G,rw": {Name: "a", Path: "/x", Access: share.ReadWrite, MaxBytes: 2 << 30},
		"a=/x,rw,nooverwrite,max-bytes=20kB,max-entries=7": {
			Name: "a", Path: "/x", Access: share.ReadWrite, NoOverwrite: true, MaxBytes: 20_000, MaxEntries: 7,
		},
		"a=/x,max-bytes=0,max-entries=0": {Name: "a", Path: "/x", Access: share.Read},
	} {
		got, err := share.Parse(text)
		if err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := share.Parse(got.String()); err != nil || again != got {
			t.Errorf("%s is %+v, %v, and not %+v", got, again, err, got)
		}
	}
}

func TestWrongShares(t *testing.T) {
	long := strings.Repeat("n", share.MaxName+1)
	for text, want := range map[string]string{
		"":                             "has no path: write NAME=PATH",
		"inbox":                        "has no path: write NAME=PATH",
		"=/x":                          `"" is not a name of a share`,
		".a=/x":                        "is not a name",
		"-a=/x":                        "is not a name",
		"A=/x":                         "is not a name",
		"a/b=/x":                       "is not a name",
		"ä=/x":                         "is not a name",
		"a\n=/x":                       `"a\n" is not a name`,
		long + "=/x":                   "the longest has 64 characters",
		"a=":                           "share a has no path",
		"a=,rw":                        "share a has no path",
		"a=/x\x00y":                    "zero byte",
		"a=/x,":                        `unknown option ""`,
		"a=/x,rx":                      `unknown option "rx": use ro, wo, rw`,
		"a=/with,comma,rw":             "a path with a comma",
		"a=/x,access=rw":               "unknown option",
		"a=/x,ro,rw":                   "access twice",
		"a=/x,nooverwrite,ro,ro":       "access twice",
		"a=/x,max-bytes":               "unknown option",
		"a=/x,max-bytes=":              `"" is not a size`,
		"a=/x,max-bytes=-1":            "is not a size",
		"a=/x,max-bytes=1X":            "is not a size",
		"a=/x,max-bytes=1.3K":          `"1.3K" is not a whole number of bytes: give a size`,
		"a=/x,max-bytes=9999999T":      "larger than any file",
		"a=/x,max-bytes=1,max-bytes=1": "max-bytes twice",
		"a=/x,max-entries=1.5":         "is not a number of entries",
		"a=/x,max-entries=-1":          "is not a number of entries",
		"a=/x,max-entries=+1":          "is not a number of entries",
		"a=/x,max-entries=":            "is not a number of entries",
	} {
		got, err := share.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v, want %q", text, got, err, want)
		}
	}
}

func TestShareHasToBeValid(t *testing.T) {
	good := share.Share{Name: "a", Path: "/x", Access: share.Read}
	must(t, good.Check())
	for _, change := range []func(*share.Share){
		func(s *share.Share) { s.Name = "" }, func(s *share.Share) { s.Path = "" },
		func(s *share.Share) { s.Access = 0 }, func(s *share.Share) { s.Access = 4 },
		func(s *share.Share) { s.MaxBytes = -1 }, func(s *share.Share) { s.MaxEntries = -1 },
	} {
		wrong := good
		change(&wrong)
		if wrong.Check() == nil {
			t.Errorf("%+v is valid", wrong)
		}
		if _, err := share.Open(wrong, nil); err == nil {
			t.Errorf("%+v was opened", wrong)
		}
	}
}

func TestAccess(t *testing.T) {
	for text, a := range map[string]share.Access{"ro": share.Read, "wo": share.Write, "rw": share.ReadWrite} {
		if got, err := share.ParseAccess(text); err != nil || got != a || a.String() != text {
			t.Errorf("%s is %v, %v", text, got, err)
		}
		for _, wanted := range []share.Access{0, share.Read, share.Write, share.ReadWrite} {
			if got, want := a.Allows(wanted), wanted == 0 || a == wanted || a == share.ReadWrite; got != want {
				t.Errorf("%v allows %v: %t", a, wanted, got)
			}
		}
	}
	for _, text := range []string{"", "none", "r", "RW", "ro,rw", "access 0x4"} {
		if got, err := share.ParseAccess(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// FuzzShare checks that what is parsed is valid and has one form.
func FuzzShare(f *testing.F) {
	for _, text := range []string{
		"inbox=/srv/inbox,rw,nooverwrite,max-bytes=64GiB,max-entries=100", "a=b", "a=,ro", "a=/x,max-bytes=1k", "=",
		"a=b=c,wo",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := share.Parse(text)
		if err != nil {
			if s != (share.Share{}) {
				t.Errorf("%q is %+v with %v", text, s, err)
			}
			return
		}
		must(t, s.Check())
		name, _, _ := strings.Cut(text, "=")
		if s.Name != name || strings.Contains(s.Path, ",") {
			t.Errorf("%q is %+v", text, s)
		}
		if again, err := share.Parse(s.String()); err != nil || again != s {
			t.Errorf("%q is %+v, %v, and not %+v", s, again, err, s)
		}
	})
}
