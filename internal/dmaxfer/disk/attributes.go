package disk

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"golang.org/x/sys/unix"
)

// Preserve selects the attributes of the source that the target gets.
type Preserve struct {
	Mode   bool // permission bits; otherwise the replaced file's, or 0644 less the umask
	Times  bool
	Owner  bool
	Xattrs bool

	// Privileged extends Xattrs as MayPreserve says. Such attributes are removed if the source does not have them.
	Privileged bool
}

// Metadata describes the target apart from its content. Only attributes selected by Preserve are used.
type Metadata struct {
	Size     int64  // bytes; for a stream, its final length
	Mode     uint32 // permission bits, without set-id bits
	Modified Timestamp
	UID, GID uint32

	Xattrs iter.Seq[Xattr] // as MayPreserve permits them; nil: none. SetXattrs sets the attributes of a directory
}

// attributed is an open file or directory.
type attributed interface {
	SetOwner(uid, gid uint32) error
	Xattrs() ([]Xattr, error)
	SetXattr(attribute Xattr) error
	RemoveXattr(name string) error
	SetMode(mode uint32) error
	SetModified(at Timestamp) error
}

const (
	nextIfNoOwner = "run as root, or leave owner out of --preserve"
	nextIfNoXattr = "choose another file system, or leave xattr out of --preserve"
)

// setAttributes sets a mode, unless it is nil, and the attributes of meta that are preserved. The owner is set before
// the mode, because changing it clears mode bits, and before extended attributes, because it clears capabilities; these
// before the mode, because it may forbid them, and is part of an ACL; the time last. path, for messages, is called
// after a failure only.
func setAttributes(of attributed, path func() string, keep Preserve, meta Metadata, mode *uint32) error {
	if keep.Owner {
		if err := of.SetOwner(meta.UID, meta.GID); err != nil {
			return cannotKeep(path(), "its owner", nextIfNoOwner, err)
		}
	}
	if keep.Xattrs && meta.Xattrs != nil {
		err := setXattrs(of, path, keep, meta.Xattrs)
		if err == nil && keep.Privileged {
			err = removeOtherXattrs(of, path, keep, meta.Xattrs)
		}
		if err != nil {
			return err
		}
	}
	if mode != nil {
		if err := of.SetMode(*mode); err != nil {
			return callFailed("setting the mode of", path(), err)
		}
	}
	if keep.Times {
		if err := of.SetModified(meta.Modified); err != nil {
			return callFailed("setting the time of", path(), err)
		}
	}
	return nil
}

// SetAttributes gives a file that has the content of the source already the attributes of meta that are preserved,
// except for extended ones. seen is the file when its content was compared: SetAttributes fails if that may have
// changed since. path is for messages. With flush content and attributes are durable afterwards. After an error some
// attributes may be set.
func SetAttributes(in Dir, name, path string, seen Info, keep Preserve, meta Metadata, flush bool) error {
	file, err := in.Open(name, true)
	if err != nil {
		return callFailed("opening", path, err)
	}
	defer file.Close()
	info, err := file.Info()
	switch {
	case err != nil:
		return callFailed("examining", path, err)
	case info.Identity != seen.Identity:
		return NewError(ErrChanged, nil, "copy again", "another process changed %s", path)
	}
	if meta.Xattrs = nil; keep.Privileged && keep.Owner { // which clears capabilities
		found, err := file.Xattrs()
		if err != nil {
			return callFailed("reading the extended attributes of", path, err)
		}
		keep.Xattrs, meta.Xattrs = true, preservedOf(found, keep)
	}
	err = setAttributes(file, func() string { return path }, keep, meta, &meta.Mode)
	if err == nil && flush {
		if err = file.Sync(); err != nil {
			return callFailed("flushing", path, err)
		}
	}
	return err
}

// preservedOf yields the attributes that are preserved.
func preservedOf(found []Xattr, keep Preserve) iter.Seq[Xattr] {
	return func(yield func(Xattr) bool) {
		for _, each := range found {
			if MayPreserve(each.Name, keep.Privileged) && !yield(each) {
				return
			}
		}
	}
}

func setXattrs(of attributed, path func() string, keep Preserve, attributes iter.Seq[Xattr]) error {
	for attribute := range attributes {
		err := errNotUserXattr
		if MayPreserve(attribute.Name, keep.Privileged) {
			err = of.SetXattr(attribute)
		}
		if err != nil { // no more of the name than a file system can store: a peer's may be much longer
			return cannotKeep(path(), fmt.Sprintf("its extended attribute %.255q", attribute.Name), nextIfNoXattr, err)
		}
	}
	return nil
}

// removeOtherXattrs removes preserved attributes that the source does not have, except for the attributes of security
// modules, which the kernel sets by itself.
func removeOtherXattrs(of attributed, path func() string, keep Preserve, attributes iter.Seq[Xattr]) error {
	found, err := of.Xattrs()
	if err != nil {
		return callFailed("reading the extended attributes of", path(), err)
	}
	wanted := make(map[string]bool)
	for attribute := range attributes {
		wanted[attribute.Name] = true
	}
	for each := range preservedOf(found, keep) {
		if wanted[each.Name] || strings.HasPrefix(each.Name, securityNamespace) {
			continue
		}
		if err := of.RemoveXattr(each.Name); err != nil && !errors.Is(err, unix.ENODATA) {
			return callFailed("removing an extended attribute of", path(), err)
		}
	}
	return nil
}

const (
	securityNamespace = "security."

	// SELinuxLabel is the name of the attribute that the kernel gives to new files where SELinux is in use.
	SELinuxLabel = securityNamespace + "selinux"
)

// MayPreserve reports whether an extended attribute is copied: user attributes are, and if privileged, POSIX ACLs and
// the namespaces security, such as capabilities, and trusted. These grant privileges, like set-id bits. Hashes that the
// kernel keeps of a file (IMA, EVM) are never copied.
func MayPreserve(attribute string, privileged bool) bool {
	switch attribute {
	case "system.posix_acl_access", "system.posix_acl_default":
		return privileged
	case securityNamespace + "ima", securityNamespace + "evm":
		return false
	}
	return strings.HasPrefix(attribute, "user.") || privileged &&
		(strings.HasPrefix(attribute, securityNamespace) || strings.HasPrefix(attribute, "trusted."))
}

var errNotUserXattr = errors.New("it is not in the user namespace")

func cannotKeep(path, what, next string, err error) error {
	return NewError(ErrTarget, err, next, "cannot preserve %s on %s: %s", what, path, Reason(err))
}
