package native

// Flags are properties and options of a side, in its HELLO.
type Flags uint32

// The flags. FlagFile, FlagTree and FlagStream exclude each other.
const (
	FlagFile           Flags = 1 << 0  // it has a regular file
	FlagTree           Flags = 1 << 1  // it has a directory
	FlagStream         Flags = 1 << 2  // it has a stream: sends if the peer has nothing, otherwise receives
	FlagOverwrite      Flags = 1 << 3  // it receives, even if it has a file or a directory
	FlagNoSparse       Flags = 1 << 4  // holes are filled with zeros
	FlagReadback       Flags = 1 << 5  // the receiver reads back what it wrote
	FlagOwner          Flags = 1 << 6  // sender: uid and gid are valid; receiver: it will apply them
	FlagXAttr          Flags = 1 << 7  // sender: it has extended attributes to send; receiver: it will apply them
	FlagAllowChanging  Flags = 1 << 8  // sender: its files may change during the transfer
	FlagLinks          Flags = 1 << 9  // hard links within the transfer are preserved
	FlagChecksum       Flags = 1 << 10 // files are compared by content, not by size and mtime
	FlagDryRun         Flags = 1 << 11 // nothing is written
	FlagRefuseSame     Flags = 1 << 12 // both sides having the file is an error, even if it is the same
	FlagFailFast       Flags = 1 << 13 // the first entry that fails ends the transfer
	FlagNoDMA          Flags = 1 << 14 // it cannot or will not do its part of PathDMA
	FlagFast           Flags = 1 << 15 // it can do its part of PathFast
	FlagReceives       Flags = 1 << 16 // it receives, as both sides know: what it has is only compared or replaced
	FlagTLS            Flags = 1 << 17 // it can and will do its part of PathTLS
	FlagMessages       Flags = 1 << 18 // it can and will do its part of PathMessages
	FlagRMA            Flags = 1 << 19 // it can and will do its part of PathRMA
	FlagTCP            Flags = 1 << 20 // it can and will do its part of PathTCP
	FlagIgnoreExisting Flags = 1 << 21 // it receives, and leaves what exists; not with FlagOverwrite
	FlagUnfinished     Flags = 1 << 22 // its directory was left by an interrupted transfer; with FlagTree

	knownFlags = FlagUnfinished<<1 - 1
)

// Has reports whether all of the wanted flags are set.
func (f Flags) Has(wanted Flags) bool { return f&wanted == wanted }
