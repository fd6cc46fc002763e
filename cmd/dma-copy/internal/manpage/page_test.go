package manpage

import (
	"testing"
	"time"
)

func TestPage(t *testing.T) {
	p := New(Header{
		Name: "dma-copy-ls", Section: 1, Summary: "List shares", Version: "dma-copy 1.2", Date: time.Unix(0, 0),
	})
	p.Section("SYNOPSIS")
	p.Synopsis("dma-copy", "ls [PEER]:SHARE")
	p.Section("DESCRIPTION")
	p.Text(`Lists them. It's one paragraph with A:B  C in the
middle of its lines.

.rc and a~b \ are text.

ls -l   takes more
        than a line
Fl      takes one
`)
	p.Options([]Option{{Names: []string{"-l", "--long"}, Value: "a|b c", Description: "As Fl."}})
	p.Entries([]Entry{{Term: "No", Kind: "string", Description: "A key."}})
	p.Literal("$ dma-copy ls 'a b'\n")
	p.See("dma-copy 1", "dma-copy.json 5")
	const want = `.Dd "January 1, 1970"
.Dt DMA\-COPY\-LS 1
.Os "dma\-copy 1.2"
.Sh NAME
.Nm dma\-copy\-ls
.Nd List shares
.Sh SYNOPSIS
.Nm dma\-copy
ls [\fIPEER\fP]:\fISHARE\fP
.Sh DESCRIPTION
Lists them.
It\(aqs one paragraph with A:B  C in the middle of its lines.
.Pp
\&.rc and a\(tib \e are text.
.Bl -tag -width Ds
.It "ls \-l"
takes more than a line
.It \&Fl
takes one
.El
.Bl -tag -width Ds
.It Fl l , Fl \-long Ar "a|b c"
As Fl.
.El
.Bl -tag -width Ds
.It Cm \&No No (string)
A key.
.El
.Bd -literal -offset indent
$ dma\-copy ls \(aqa b\(aq
.Ed
.Xr dma-copy 1 ,
.Xr dma-copy.json 5
`
	if got := p.String(); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
}

func TestLongLinesAreWrapped(t *testing.T) {
	p := new(Page)
	p.paragraph("one two " + longWord + " three")
	if want := "one two\n" + longWord + "\nthree\n"; p.String() != want {
		t.Errorf("wrapped to %q, want %q", p.String(), want)
	}
}

const longWord = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
