package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// threeFiles are in the tree of these tests. A terminal must not get the last name as it is.
var threeFiles = []string{"a", "b", "c\x1b[2J"}

// logLine is what these tests read of a line of the log.
type logLine struct{ Level, Message, Path string }

// logOf returns the log of a process that has ended, without how busy the machine was.
func (s side) logOf() (lines []logLine) {
	s.t.Helper()
	for text := range strings.Lines(s.stderr.String()) {
		if strings.HasPrefix(text, "{") && !isEvent(text) {
			var line logLine
			must(s.t, json.Unmarshal([]byte(text), &line))
			if line.Message != "heartbeats of the peer missed" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// expectStory expects the log to have lines with these texts in this order, each with a path unless that is empty.
func (s side) expectStory(path string, texts ...string) {
	s.t.Helper()
	rest := s.logOf()
	for _, text := range texts {
		says := func(l logLine) bool { return l.Message == text && (path == "" || l.Path == path) }
		at := slices.IndexFunc(rest, says)
		if at < 0 {
			s.t.Fatalf("the log of the %s lacks %q of %q in its place:\n%s", s.name, text, path, s.stderr.String())
		}
		rest = rest[at+1:]
	}
}

// expectCopyInLogs expects the logs of both sides of a copy of the three files to tell it in at most 60 lines.
func expectCopyInLogs(t *testing.T, sender, receiver side, begins map[side][]string) {
	t.Helper()
	lines := len(sender.logOf()) + len(receiver.logOf())
	if lines > 60 {
		t.Errorf("%d lines, want at most 60:\n%s\n%s", lines, sender.stderr.String(), receiver.stderr.String())
	}
	for s, texts := range begins {
		s.expectStory("", append(texts, "peer known", "agreed", "window opened", "lanes started", "lanes ended",
			"transfer ended")...)
		if strings.Contains(s.stderr.String(), "\x1b") {
			t.Errorf("a control character in the log of the %s", s.name)
		}
	}
	for _, name := range threeFiles {
		sender.expectStory(name, "entry planned", "entry needed", "entry sent", "entry committed")
		receiver.expectStory(name, "entry planned", "entry needed", "entry stored", "entry committed")
	}
}

// sampleLine matches a line of the sample in docs/guide/troubleshooting.md.
var sampleLine = regexp.MustCompile(`(?m)^12:00:00 (?:DBG|INF) ([^=\n]+?)(?: \w+=[^=\n]*)*?(?: path=(\S+))?$`)

// expectSample expects the log to have the lines of the sample. Those of lanes and jobs come in another order.
func (s side) expectSample() {
	s.t.Helper()
	page, err := os.ReadFile(moduleRoot + "/docs/guide/troubleshooting.md")
	must(s.t, err)
	var want, got []string
	for _, match := range sampleLine.FindAllStringSubmatch(string(page), -1) {
		want = append(want, match[1]+" "+match[2])
	}
	for _, line := range s.logOf() {
		got = append(got, line.Message+" "+strings.TrimSuffix(line.Path, "\x1b[2J"))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		s.t.Errorf("the page shows %q, the log of the %s has %q", want, s.name, got)
	}
}

// At level DEBUG the logs of both sides tell the story of a copy, and of each file in it.
func TestDebugTellsTheStory(t *testing.T) {
	t.Parallel()
	t.Run("two terminals", func(t *testing.T) {
		f := newFixture(t)
		f.writeTree("host", "", threeFiles...)
		sides := f.expectTree("host", treeFlags{sender: "-l DEBUG", receiver: "-l DEBUG"})
		begin := []string{"device opened", "waiting for the peer", "connection made"}
		expectCopyInLogs(t, sides["host"], sides["dpu"], map[side][]string{sides["host"]: begin, sides["dpu"]: begin})
		sides["host"].expectSample()
	})
	t.Run("daemon", func(t *testing.T) {
		f := newDaemonFixture(t, "dpu")
		f.writeTree("host", "", threeFiles...)
		d := f.serve("-l DEBUG")
		push := f.expectCommand("push -l DEBUG host/tree :files")
		d.waitUntilIdle()
		d.stop()
		expectCopyInLogs(t, push, d.side, map[side][]string{
			push:   {"device opened", "waiting for the daemon", "connection made", "copy accepted"},
			d.side: {"a peer has connected", "a peer is connected", "request received"},
		})
		d.expectStory("", "transfer ended", "request", "a peer has disconnected")
	})
}

// No level logs the word of --with or a private key.
func TestTraceLogsNoSecret(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.writeTree("host", "", threeFiles...)
	const word = "open-sesame"
	flags := "-l TRACE --with " + word
	pair := f.expectTree("host", treeFlags{flags, flags})
	d := f.serve("-l TRACE")
	push := f.expectCommand("push -l TRACE host/tree :files")
	d.stop()
	secrets := []string{word}
	for _, name := range bothSides {
		secrets = append(secrets, privateKeys(t, filepath.Join(f.dir, name+".keys"))...)
	}
	for _, s := range []side{pair["host"], pair["dpu"], push, d.side} {
		for _, secret := range secrets {
			if strings.Contains(s.stderr.String(), secret) {
				t.Errorf("the log of the %s has %q", s.name, secret)
			}
		}
		if !strings.Contains(s.stderr.String(), `"message":"message received"`) {
			t.Errorf("the log of the %s has no message", s.name)
		}
	}
}

// privateKeys returns the lines of the files in a directory of keys that only their owner may read.
func privateKeys(t *testing.T, directory string) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*"))
	must(t, err)
	for _, path := range files {
		info, err := os.Stat(path)
		must(t, err)
		if info.IsDir() || info.Mode().Perm()&0o077 != 0 {
			continue
		}
		text, err := os.ReadFile(path)
		must(t, err)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); len(line) > 30 && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) == 0 {
		t.Errorf("no private key in %s", directory)
	}
	return lines
}
