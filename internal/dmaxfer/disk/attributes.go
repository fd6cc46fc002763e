package disk

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Preserve selects the attributes of the source that the target gets.
type Preserve struct {
	Mode   bool // permission bits; otherwise those of the replaced file, or 0644 less the umask
	Times  bool
	Owner  bool
	Xattrs bool
}

// Metadata describes the target apart from its content. Only attributes selected by Preserve are used.
type Metadata struct {
	Size     int64  // bytes; for a stream, its final length
	Mode     uint32 // permission bits, without set-id bits
	Modified Timestamp
	UID, GID uint32

	Xattrs iter.Seq[Xattr] // "user." attributes only; nil: none. SetXattrs sets the attributes of a directory
}

// attributed is an open file or directory.
type attributed interface {
	SetOwner(uid, gid uint32) error
	SetXattr(attribute Xattr) error
	SetMode(mode uint32) error
	SetModified(at Timestamp) error
}

const (
	nextIfNoOwner = "run as root, or leave owner out of --preserve"
	nextIfNoXattr = "choose another file system, or leave xattr out of --preserve"
)

// setAttributes sets a mode, unless it is nil, and the attributes of meta that are preserved. The owner is set before
// the mode, because changing it clears mode bits; extended attributes before the mode, because it may forbid them; the
// time last. path, for messages, is called after a failure only.
func setAttributes(of attributed, path func() string, keep Preserve, meta Metadata, mode *uint32) error {
	if keep.Owner {
		if err := of.SetOwner(meta.UID, meta.GID); err != nil {
			return cannotKeep(path(), "its owner", nextIfNoOwner, err)
		}
	}
	if keep.Xattrs && meta.Xattrs != nil {
		if err := setXattrs(of, path, meta.Xattrs); err != nil {
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
	meta.Xattrs = nil
	err = setAttributes(file, func() string { return path }, keep, meta, &meta.Mode)
	if err == nil && flush {
		if err = file.Sync(); err != nil {
			return callFailed("flushing", path, err)
		}
	}
	return err
}

func setXattrs(of attributed, path func() string, attributes iter.Seq[Xattr]) error {
	for attribute := range attributes {
		err := errNotUserXattr
		if MayPreserve(attribute.Name) {
			err = of.SetXattr(attribute)
		}
		if err != nil { // of the name no more than a file system can store: that of a peer may be much longer
			return cannotKeep(path(), fmt.Sprintf("its extended attribute %.255q", attribute.Name), nextIfNoXattr, err)
		}
	}
	return nil
}

// MayPreserve reports whether an extended attribute is copied. Only user attributes are; others grant privileges,
// like set-id bits.
func MayPreserve(attribute string) bool { return strings.HasPrefix(attribute, "user.") }

var errNotUserXattr = errors.New("it is not in the user namespace")

func cannotKeep(path, what, next string, err error) error {
	return NewError(ErrTarget, err, next, "cannot preserve %s on %s: %s", what, path, Reason(err))
}
