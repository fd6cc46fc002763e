package main

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/transfer"
	"github.com/dma-copy/dma-copy/internal/share"
)

// endsOf returns where the copies of a command land.
func endsOf(t *testing.T, kind transfer.Kind, line string) (string, error) {
	t.Helper()
	s := &transfer.Settings{Kind: kind}
	if err := load(s, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.SetPaths(strings.Fields(line)); err != nil {
		return "", err
	}
	if err := s.Validate(); err != nil {
		return "", err
	}
	all, err := s.Ends()
	var landed []string
	for _, e := range all {
		at := e.Local
		if s.Sends {
			at = e.Remote.String()
		}
		if e.Directory {
			at += " (content)"
		}
		landed = append(landed, at)
	}
	return strings.Join(landed, ", "), err
}

// Where a copy lands follows from the spelling of source and target alone.
func TestWhereCopiesLand(t *testing.T) {
	for line, want := range map[string]string{
		"push photos :inbox":              ":inbox/photos",
		"push photos :inbox/":             ":inbox/photos",
		"push photos/ :inbox/.":           ":inbox/photos",
		"push photos dpu:inbox":           "dpu:inbox/photos",
		"push photos ucx://lab/inbox":     "ucx://lab:7483/inbox/photos",
		"push photos ucx://lab/inbox/":    "ucx://lab:7483/inbox/photos",
		"push photos :inbox/new":          ":inbox/new",
		"push photos :inbox/new/":         ":inbox/new/photos",
		"push photos :inbox/new/.":        ":inbox/new/photos",
		"push photos/. :inbox":            ":inbox (content)",
		"push photos/. :inbox/new":        ":inbox/new (content)",
		"push photos/./ :inbox/new/":      ":inbox/new (content)",
		"push . :inbox/new/":              ":inbox/new (content)",
		"push .. :inbox":                  ":inbox (content)",
		"push a/.. :inbox/x":              ":inbox/x (content)",
		"push / :inbox/x":                 ":inbox/x (content)",
		"push /srv/photos// :inbox":       ":inbox/photos",
		"push a/b c :inbox":               ":inbox/b, :inbox/c",
		"push a/. c :inbox/x/":            ":inbox/x (content), :inbox/x/c",
		"push - :inbox/x":                 ":inbox/x",
		"push ./- :inbox":                 ":inbox/-",
		"push ./a:b :inbox":               ":inbox/a:b",
		"pull :inbox/photos .":            "./photos",
		"pull :inbox/photos ..":           "../photos",
		"pull :inbox/photos/ ./":          "./photos",
		"pull :inbox/photos a/..":         "a/../photos",
		"pull :inbox/photos a/./":         "a/photos",
		"pull :inbox/photos /":            "/photos",
		"pull :inbox/photos //.":          "/photos",
		"pull :inbox/photos new":          "new",
		"pull :inbox/photos/. new/":       "new (content)",
		"pull :inbox/photos/. .":          ". (content)",
		"pull :inbox/photos/. /":          "/ (content)",
		"pull :inbox .":                   "./inbox",
		"pull :inbox/ new/":               "new/inbox",
		"pull :inbox/. new/":              "new (content)",
		"pull :inbox new":                 "new",
		"pull :inbox/- .":                 "./-",
		"pull :inbox/a -":                 "-",
		"pull :a/b :c new/":               "new/b, new/c",
		"pull :a/*.jpg :b/*.jpg new/":     "new/*.jpg, new/*.jpg",
		`pull :a/b\[1].jpg new`:           "new",
		"sync photos :backup/":            ":backup/photos",
		"sync photos :backup/photos":      ":backup/photos",
		"sync photos/. :backup":           ":backup (content)",
		"sync :backup/photos .":           "./photos",
		"sync :backup/photos/. photos":    "photos (content)",
		"sync ucx://[::1]:9/backup home/": "home/backup",
	} {
		command, arguments, _ := strings.Cut(line, " ")
		kind := map[string]transfer.Kind{"push": transfer.Push, "pull": transfer.Pull, "sync": transfer.Sync}[command]
		if got, err := endsOf(t, kind, arguments); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"push a b :inbox/x":         `DST ":inbox/x" would be the name of each of several sources: end it with / to`,
		"pull :inbox/a :inbox/b c":  `DST "c" would be the name of each of several sources: end it with / to`,
		"pull :inbox/*.jpg c":       `DST "c" would be the name of each of several sources: end it with / to`,
		"push - :inbox":             `SRC - has no name in DST ":inbox": `,
		"push - :inbox/new/":        `SRC - has no name in DST ":inbox/new/": `,
		"push x/a y/a :inbox":       `two sources have the name "a" in DST ":inbox": copy them one by one`,
		"push x/. y/. :inbox":       `two sources have the name "" in DST ":inbox": `,
		"pull :inbox/a :inbox/b -":  "DST - conflicts with several sources: ",
		"push a :inbox/../x":        `DST ":inbox/../x": a path below a share cannot contain ".."`,
		"pull :inbox/a :inbox/b ''": `DST "''" would be`,
	} {
		command, arguments, _ := strings.Cut(line, " ")
		kind := map[string]transfer.Kind{"push": transfer.Push, "pull": transfer.Pull}[command]
		if got, err := endsOf(t, kind, arguments); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %s", line, got, err, want)
		}
	}
}

// Each line of a list of peers may have a target of its own.
func TestWhereCopiesToPeersLand(t *testing.T) {
	s := &transfer.Settings{Fleet: transfer.Fleet{To: "peers"}}
	if err := s.SetPaths([]string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{"p:in": true, "p:in/x/": true, "p:in/x": false} {
		target, _, err := share.ParseRemote(text)
		if err == nil {
			_, err = s.ForTarget(target).Ends()
		}
		if (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
	}
}
