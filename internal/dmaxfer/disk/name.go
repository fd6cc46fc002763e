package disk

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"
)

const (
	partialSuffix = ".dma-copy-part"
	journalSuffix = ".dma-copy-journal" // the longest of the three
	linkSuffix    = ".dma-copy-new"
)

// A tag has a prefix that is unlikely in other names after a dot, and hexadecimal digits: "file" must not use the
// partial file of "file.20261122".
const (
	tagStart  = "dma-"
	tagDigits = 8
)

// chooseNames uses the usual names unless one of them belongs to another user in a sticky directory, where only that
// user can remove it. Otherwise it uses the names of an earlier transfer of this user, found by their tag, or new
// ones that cannot be guessed.
func (p *Partial) chooseNames() error {
	p.names = namesOf(p.base, "")
	taken, err := p.firstForeignName()
	if err != nil || taken == "" {
		return err
	}
	in, err := p.dir.Info()
	if err != nil {
		return CannotCreate(p.path, err)
	}
	if in.Mode&fs.ModeSticky == 0 {
		return nil // openAndLock refuses the file
	}
	entries, err := Names(p.dir)
	if err != nil {
		return CannotCreate(p.path, err)
	}
	p.names = namesOf(p.base, p.earlierTag(entries))
	p.renamed = fmt.Sprintf("%s in the directory of %s belongs to another user, so the partial file is %s",
		taken, p.path, p.names.partial)
	return nil
}

// names are the names of a target's files in its directory.
type names struct {
	partial string
	journal string
	link    string // of an unnamed file that is about to replace NAME
}

func namesOf(base, tag string) names {
	hidden := stem(base, tag)
	return names{
		partial: hidden + partialSuffix,
		journal: hidden + journalSuffix,
		link:    hidden + linkSuffix,
	}
}

// firstForeignName returns the first of the names that belongs to another user; empty if none does.
func (p *Partial) firstForeignName() (name string, err error) {
	used := []string{p.names.partial, p.names.journal, p.names.link}
	for _, name := range used {
		found, err := p.dir.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", CannotCreate(p.path, err)
		case found.UID != p.fs.Self().UID:
			return name, nil
		}
	}
	return "", nil
}

// earlierTag returns the tag of a reusable partial file, or a new tag.
func (p *Partial) earlierTag(entries []string) string {
	self := p.fs.Self()
	for _, name := range entries {
		tag, is := tagOf(name, p.base)
		if !is {
			continue
		}
		if found, err := p.dir.Stat(name); err == nil && checkReusable(found, self) == nil {
			return tag
		}
	}
	return newTag()
}

// checkReusable returns why a file cannot be a leftover of this user's earlier transfer, or nil. A file with a second
// name could be one that another process wants overwritten.
func checkReusable(found Info, self Self) error {
	switch {
	case !found.Mode.IsRegular():
		return errNotRegular
	case found.UID != self.UID:
		return fmt.Errorf("it belongs to user %d", found.UID)
	case found.Links > 1:
		return errors.New("it has more than one hard link")
	default:
		return nil
	}
}

// stem returns the hidden name that partial file and journal share. It contains a tag where the names without one
// belong to another user. If base is too long, stem keeps as much as fits and appends a digest of all of it, because
// long names often differ only at the end.
func stem(base, tag string) string {
	if tag != "" {
		tag = "." + tag
	}
	limit := maxNameLength - len(".") - len(tag) - len(journalSuffix)
	if len(base) <= limit {
		return "." + base + tag
	}
	sum := sha256.Sum256([]byte(base))
	digest := "-" + hex.EncodeToString(sum[:8])
	cut := base[:limit-len(digest)]
	for !utf8.ValidString(cut) && utf8.ValidString(base) {
		cut = cut[:len(cut)-1]
	}
	return "." + cut + digest + tag
}

// newTag returns a random tag, so that other users cannot create its names beforehand.
func newTag() string {
	var random [tagDigits / 2]byte
	_, _ = rand.Read(random[:]) // never fails
	return tagStart + hex.EncodeToString(random[:])
}

// tagOf returns the tag in the name of a partial file of base; found is false for any other name.
func tagOf(name, base string) (tag string, found bool) {
	whole, isPartial := strings.CutSuffix(name, partialSuffix)
	cut := len(whole) - len(tagStart) - tagDigits
	if !isPartial || cut < 1 || stem(base, whole[cut:]) != whole {
		return "", false
	}
	return whole[cut:], strings.HasPrefix(whole[cut:], tagStart)
}
