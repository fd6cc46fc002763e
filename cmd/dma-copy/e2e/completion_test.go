package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// offers is a beginning of a command line and what a shell completes its last word to.
type offers struct {
	line string
	want []string
}

// insideShare is offered for what is in the share, where the last word is the share's directory.
var insideShare = []string{"dir/", "image.bin", "with blank"}

// below returns names behind the beginning of a path.
func below(base string, names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, base+name)
	}
	return paths
}

// TestShellsComplete lets each shell complete command lines with the script that the program prints for it.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	f := newNetworkFixture(t)
	f.completeWithin("5m")
	f.fillShare()
	must(t, os.WriteFile(filepath.Join(f.dir, "hosts.txt"), nil, 0o644))
	d := f.serve("")
	network := "--keys host.keys --json peers.json "
	address := "ucx://" + f.address + "/"
	forEachShell(t, f, []offers{
		{"pu", []string{"pull", "push"}},
		{"completion ", []string{"bash", "zsh", "fish"}},
		{"help ver", []string{"verify", "version"}},
		{"config show pul", []string{"pull"}},
		{"config show push --driver so", []string{"soft"}},
		{"keys --keys host.keys remove ", []string{"peer"}},
		{"push --driver ", []string{"auto", "doca", "soft", "ucx"}},
		{"push --preserve owner,", []string{"owner,xattr", "owner,links"}},
		{"push --exp", []string{"--expect"}},
		{"push --exclude x --exclude-f", []string{"--exclude-from"}},
		{"--cores 0 --num", nil},
		{"--pci-addr b1:00.1 --dev-", nil},
		{"-p b1:00.", []string{"b1:00.0", "b1:00.1"}},
		{"-p 03:00.1 -r b", []string{"b1:00.0", "b1:00.1"}},
		{"push --keys h", []string{"host", "host.keys"}},
		{"push --keys=host.", []string{"--keys=host.keys"}},
		{"push --driver=s", []string{"--driver=soft"}},
		{"push h", []string{"host", "host.keys", "hosts.txt"}},
		{"devices ", nil},
		{"devices 'a(touch evaluated)' ", nil},
		{"ping " + network, []string{"net"}},
		{"ls " + network, []string{"net:"}},
		{"ls " + network + "net:", []string{"net:files/"}},
		{"pull " + network + "net:files/", below("net:files/", insideShare...)},
		{"pull " + network + "net:files/i", []string{"net:files/image.bin"}},
		{"push " + network + "hosts.txt n", []string{"net:"}},
		{"sync " + network + "host net:files/dir/", []string{"net:files/dir/inner"}},
		{"sync " + network + "net:files/dir/ host.", []string{"host.keys"}},
		{"ls --keys host.keys " + address + "files/", below(address+"files/", insideShare...)},
	})
	d.stop()
}

// TestShellsCompleteOverADevice is the same where the daemon is behind a device.
func TestShellsCompleteOverADevice(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.completeWithin("5m")
	f.fillShare()
	d := f.serve("")
	ask := "pull -p b1:00.1 --keys host.keys "
	forEachShell(t, f, []offers{
		{ask + ":", []string{":files/"}},
		{ask, []string{":files/"}},
		{ask + ":files/", below(":files/", insideShare...)},
		{ask + ":files/nothing", nil},
	})
	d.stop()
	f.completeWithin("10ms")
	forEachShell(t, f, []offers{
		{ask + ":", nil},
		{"ls --keys host.keys ucx://127.0.0.1:1/files/", nil},
	})
}

// completeWithin sets how long a completion may take: so long that no test depends on it, or less than it takes.
func (f *daemonFixture) completeWithin(limit string) {
	f.environment = append(slices.Clone(f.environment), "DMA_COPY_COMPLETION_WAIT="+limit)
}

// fillShare puts a file of each kind of name into the share. A shell that runs what is in a name makes a file
// "evaluated".
func (f *daemonFixture) fillShare() {
	f.t.Helper()
	must(f.t, os.Mkdir(f.share("dir"), 0o755))
	names := []string{"image.bin", "with blank", "line\nbreak", "dir/inner", "`>evaluated`1", "`>evaluated`2"}
	for _, name := range names {
		must(f.t, os.WriteFile(f.share(name), nil, 0o644))
	}
}

// forEachShell completes the lines in each shell.
func forEachShell(t *testing.T, f *daemonFixture, lines []offers) {
	t.Helper()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			requireShell(t, shell)
			f := &daemonFixture{fixture: &fixture{t: t, dir: f.dir, environment: f.environment}}
			complete := map[string]func(*daemonFixture) func(string) []string{
				"bash": bashIn, "zsh": zshIn, "fish": fishIn,
			}[shell](f)
			for _, tc := range lines {
				got, want := complete("dma-copy "+tc.line), slices.Sorted(slices.Values(tc.want))
				if got = withoutSlashes(got); !slices.Equal(got, want) {
					t.Errorf("%q is completed to %q, want %q", tc.line, got, want)
				}
			}
			if _, err := os.Stat(filepath.Join(f.dir, "evaluated")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a word of a line was run as a command (%v)", err)
			}
		})
	}
}

// withoutSlashes removes the slash behind directories of this side, which some shells add if it is the only candidate.
func withoutSlashes(names []string) []string {
	for i, name := range names {
		if !strings.Contains(name, ":") {
			names[i] = strings.TrimSuffix(name, "/")
		}
	}
	slices.Sort(names)
	return names
}

// requireShell skips the test if the shell is not installed, but not in CI.
func requireShell(t *testing.T, shell string) {
	t.Helper()
	_, err := exec.LookPath(shell)
	if err == nil && shell == "bash" {
		_, err = os.Stat(bashCompletion)
	}
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	must(t, err)
}

// script returns the path of the script for a shell in a directory of its own.
func (f *daemonFixture) script(shell, name string) string {
	f.t.Helper()
	s := f.start("completion", "dma-copy completion "+shell)
	s.expectExit(exitOK)
	path := filepath.Join(f.t.TempDir(), name)
	must(f.t, os.WriteFile(path, []byte(s.stdout.String()), 0o644))
	return path
}

// bashCompletion is where Debian's package bash-completion has its functions.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// The settings of an interactive bash: Control-O replaces the last word by all candidates, and Control-G prints the
// line and empties it.
const bashSettings = `
source %s
source %s
PS1=
show() { printf '\n[%%s]\n' "$READLINE_LINE"; READLINE_LINE=; READLINE_POINT=0; }
bind -x '"\C-g": show'
bind '"\C-o": insert-completions'
bind 'set bell-style none'
bind 'set enable-bracketed-paste off'
echo '[ready]'
`

func bashIn(f *daemonFixture) func(string) []string {
	settings := filepath.Join(f.t.TempDir(), "bashrc")
	text := fmt.Sprintf(bashSettings, bashCompletion, f.script("bash", "dma-copy"))
	must(f.t, os.WriteFile(settings, []byte(text), 0o644))
	terminal := f.startInTerminal("bash", "--noprofile", "--rcfile", settings, "-i")
	return func(line string) []string {
		got := lastWords(line, terminal.replyTo(line+"\x0f\x07"))
		// A colon separates words in bash, so only the first candidate has what is in front of the last one.
		last := line[strings.LastIndexByte(line, ' ')+1:]
		for i := range got {
			if colon := strings.LastIndexByte(last, ':'); colon >= 0 && i > 0 {
				got[i] = last[:colon+1] + got[i]
			}
		}
		slices.Sort(got)
		return got
	}
}

// The same for zsh.
const zshSettings = `
fpath=(%s $fpath)
autoload -U compinit
compinit -u -D
PROMPT=
unsetopt BEEP PROMPT_SP
show() { print -r -- $'\n'"[$BUFFER]"; BUFFER= }
zle -N show
bindkey '^G' show
zle -C all complete-word _generic
zstyle ':completion:all::::' completer _all_matches _complete
zstyle ':completion:all:*' insert true
bindkey '^O' all
print '[ready]'
`

func zshIn(f *daemonFixture) func(string) []string {
	directory := f.t.TempDir()
	text := fmt.Sprintf(zshSettings, filepath.Dir(f.script("zsh", "_dma-copy")))
	must(f.t, os.WriteFile(filepath.Join(directory, ".zshrc"), []byte(text), 0o644))
	f.environment = append(slices.Clone(f.environment), "ZDOTDIR="+directory)
	terminal := f.startInTerminal("zsh", "-d", "-i")
	return func(line string) []string {
		got := lastWords(line, terminal.replyTo(line+"\x0f\x07"))
		slices.Sort(got)
		return got
	}
}

// lastWords returns the words of a line that replace the last word it had before, which may still be there. A
// backslash is in front of a blank in a word.
func lastWords(before, line string) (words []string) {
	start := strings.LastIndexByte(before, ' ') + 1
	if !strings.HasPrefix(line, before[:start]) {
		return []string{"the line is " + line}
	}
	const blank = "\x00"
	for word := range strings.FieldsSeq(strings.ReplaceAll(line[start:], `\ `, blank)) {
		words = append(words, strings.ReplaceAll(strings.ReplaceAll(word, blank, " "), `\`, ""))
	}
	if len(words) == 1 && words[0] == before[start:] {
		return nil
	}
	return words
}

func fishIn(f *daemonFixture) func(string) []string {
	script := f.script("fish", "dma-copy.fish")
	return func(line string) (got []string) {
		f.t.Helper()
		p, err := startProcess(processOptions{
			name: "fish", dir: f.dir, environment: append(slices.Clone(f.environment), "HOME="+f.dir, "LINE="+line),
			argv: []string{"fish", "--no-config", "-c", "source " + script + "; complete -C $LINE"},
		})
		must(f.t, err)
		s := side{process: p, t: f.t}
		s.expectExitIn(exitOK)
		for candidate := range strings.Lines(s.stdout.String()) {
			name, _, _ := strings.Cut(strings.TrimSuffix(candidate, "\n"), "\t")
			got = append(got, name)
		}
		slices.Sort(got)
		return got
	}
}
