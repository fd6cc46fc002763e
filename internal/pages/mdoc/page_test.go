package mdoc

import (
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/option"
)

func TestPage(t *testing.T) {
	p := New(Header{
		Name: "dma-copy-ls", Section: 1, Summary: "List shares", Version: "dma-copy 1.2", Date: time.Unix(0, 0),
	})
	p.Section("SYNOPSIS")
	p.Synopsis("dma-copy", "ls [PEER]:SHARE")
	p.Section("DESCRIPTION")
	p.Paragraphs(`Lists them. It's one paragraph with A:B  C in the
middle of its lines.

.rc and a~b \ are text.
`)
	p.Rows([]option.Row{{Term: "ls -l", Text: "takes one line"}, {Term: "No", Text: "A key.", Kind: "string"}})
	p.Options([]Option{{Names: []string{"-l", "--long"}, Value: "a|b c", Text: "As Fl."}})
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
.It Cm "ls \-l"
takes one line
.It Cm \&No No (string)
A key.
.El
.Bl -tag -width Ds
.It Fl l , Fl \-long Ar "a|b c"
As Fl.
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
