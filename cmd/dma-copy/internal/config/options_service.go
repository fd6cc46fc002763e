package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/dma-copy/dma-copy/internal/share"
)

// transferHelp has the options of a copy that push, pull and sync have, too, with the help where it is another there:
// the direction is part of the command, and the other side is a daemon.
var transferHelp = map[string]string{
	"log-level": "", "log-format": "", "sdk-log-level": "", "json": "",
	"driver": "", "require-hw": "", "doca-libdir": "", "pci-addr": "",
	"rep-pci": "Host function whose daemon is meant, DPU only: PCI address, or VUID or net device name of its " +
		"representor",
	"role": "", "numa": "", "cores": "",
	"chunk": "Bytes per DMA task, such as 65536, 256KiB or 1M (1024 to the K); 0 is automatic. The smaller of both " +
		"sides, rounded down to a power of two (minimum 4KiB)",
	"depth": "DMA tasks in flight; 0 is automatic. The smaller of both sides",
	"path":  "",
	"wait":  "Timeout for the daemon to be reached", "timeout": "",
	"max-duration": "Timeout for each source, from when its copy starts; 0 is none",
	"max-bytes":    "", "max-holes": "", "idle-timeout": "",
	"overwrite":       "Replace the target if it exists, or the files in it that differ",
	"ignore-existing": "Leave the target as it is if it exists, and the files that exist in it",
	"backup":          "Keep a file that is replaced as FILE~",
	"output":          "Report as text on stderr, or as JSON lines on stdout (on stderr where - is the target)",
	"progress":        "", "events": "", "quiet": "",
	"digest": "Digest that both sides compare; the stronger choice of both sides is used; auto is blake3, or crc32c " +
		"with --auth none",
	"expect":         "Expected digest of the only source, such as crc32c:1f0e22c4, else fail; implies its --digest",
	"verify":         "",
	"allow-changing": "push: the source may change during the copy; its size at the start is sent",
	"durability":     "", "sparse": "",
	"preserve": "Preserve them too, if the daemon permits it; mode and modification time are always preserved " +
		"(links: hard links between files of a tree)",
	"files-from": "Copy the paths in FILE only, one per line, relative to the source; - is stdin",
	"checksum":   "Compare what the target has already by digest, not by size and modification time",
	"if-same":    "If the target is the same already: succeed, or fail as for files that differ",
	"dry-run":    "", "fail-fast": "Stop at the first source, or entry of a tree, that fails",
	"max-entries": "", "bwlimit": "",
}

// syncHelp is what sync changes of transferHelp. It always replaces what differs, so it has no option for that.
var syncHelp = map[string]string{
	"allow-changing": "SRC may change during the copy; its size at the start is copied",
	"expect":         "Expected digest of a file, such as crc32c:1f0e22c4, else fail; implies its --digest",
	"dry-run":        "Print what would be copied and deleted, and change nothing",
	"output":         "Report as text on stderr, or as JSON lines on stdout",
	"fail-fast":      "Stop at the first entry of a tree that fails",
	"max-duration":   "Timeout for the copy, from when it starts; 0 is none",
}

// options implements Settings.
func (s *Transfer) options() []option {
	help := []map[string]string{oneSidedHelp, transferHelp}
	if s.Kind == Sync {
		help = append(help, syncHelp)
	}
	table := append(withAutoDigest(withHelp(s.Copy.options(), help...)), makePathOption(&s.MakePath))
	if s.Kind == Sync {
		table = slices.DeleteFunc(table, func(opt option) bool {
			return opt.name == "overwrite" || opt.name == "ignore-existing" || opt.name == "if-same"
		})
		table = append(table, s.deleteOptions()...)
	}
	if s.Kind == Push {
		table = append(table, s.Fleet.options()...)
	}
	return slices.Concat(withNetworkPaths(table), s.Contact.options(), s.Network.options())
}

// withNetworkPaths makes --path that of a command that may connect to another machine.
func withNetworkPaths(table []option) []option {
	for i := range table {
		if table[i].name == "path" {
			table[i].words = textsOf(append([]PathChoice{PathAuto}, everyPath()...)...)
			table[i].help = "How file data is copied: by DMA or over Comch producers and consumers (fast); to " +
				"another machine over TLS, or if the daemon permits it without encryption: over TCP, by UCX's active " +
				"messages (am) or by RDMA (rma). auto is tls; over a device it is dma if both sides support it, " +
				"otherwise fast"
		}
	}
	return table
}

func (s *Transfer) deleteOptions() []option {
	return []option{
		{group: AddedFlags, name: "delete", fallback: "false", json: jsonForced, assign: s.setDelete,
			help: "After a copy without failures: delete from DST what SRC does not have, unless a pattern excludes " +
				"it. Refused at the root of a share, if SRC is empty, and for more than half of DST, except with " +
				"--max-delete or as --delete=force, which does not ask either"},
		{group: AddedFlags, name: "max-delete", value: "COUNT", json: jsonNumber,
			assign: into(&s.MaxDelete, parseAtLeastOne),
			help:   "Delete up to COUNT entries, and nothing if it were more"},
	}
}

// setDelete sets what --delete means.
func (s *Transfer) setDelete(text string) (err error) {
	if s.Force = text == "force"; s.Force {
		s.Delete = true
		return nil
	}
	if s.Delete, err = parseSwitch(text); err != nil {
		return errors.New("give nothing, or =force")
	}
	return nil
}

// options returns the options of every command that talks to a daemon.
func (s *Contact) options() []option {
	return append(identityOptions(&s.Keys, &s.Auth), switchOption(AddedFlags, "trust-first", &s.TrustFirst,
		"Trust the key of a daemon where none is trusted yet: compare its words with those that "+
			"dma-copy keys show prints on the other side"))
}

// identityOptions select the keys of this side and whether the peer must have one that is trusted.
func identityOptions(keys *string, auth *AuthChoice) []option {
	return []option{
		keysOption(keys, "Directory of this side's key and of the trusted keys, see dma-copy keys --help"),
		choiceOption(AddedFlags, "auth", auth, AuthKeys,
			"keys: the peer must have a trusted key; none: anybody may be the peer", AuthKeys, AuthNone),
	}
}

// options implements Settings.
func (s *List) options() []option {
	return s.Places.with(
		withLetter("l", switchOption(AddedFlags, "long", &s.Long,
			"Also list kind and mode, size and modification time")),
		switchOption(AddedFlags, "recursive", &s.Recursive, "List directories with everything below them"),
		outputOption(&s.Output, "Results as text, or as JSON lines, on stdout"),
	)
}

// options implements Settings.
func (s *MakeDir) options() []option {
	return s.Places.with(
		withLetter("p", switchOption(AddedFlags, "parents", &s.Parents,
			"Create missing directories above it, too; one that exists is no failure")),
		outputOption(&s.Output, outputOfChanges),
	)
}

// options implements Settings.
func (s *Remove) options() []option {
	return s.Places.with(
		withLetter("r", switchOption(AddedFlags, "recursive", &s.Recursive,
			"Remove directories with all that is in them")),
		withLetter("f", switchOption(AddedFlags, "force", &s.Force,
			"Do not ask, and take what does not exist for removed")),
		outputOption(&s.Output, outputOfChanges),
	)
}

const outputOfChanges = "text prints failures only; json is a line for each change or failure on stdout"

// with returns the options of a command in shares. Where one of its own has the letter of a common one, as users of the
// command of that name expect, the common one has none.
func (s *Places) with(own ...option) []option {
	common := append(commonOptions(&s.Logging, &s.Driver),
		peerOptions(&s.Device, &s.Representor, &s.Role, &s.Wait, &s.Timeout, &s.IdleTimeout)...)
	for i := range common {
		for _, opt := range own {
			if opt.short == common[i].short {
				common[i].short = ""
			}
		}
	}
	return slices.Concat(common, own, []option{s.Network.trafficClassOption()}, s.Contact.options())
}

// shareOptions select what is served, and to whom.
func (s *Serve) shareOptions() []option {
	return []option{
		{group: ServeFlags, name: "share", value: "NAME=PATH[,RIGHTS]", json: jsonList, list: "share",
			assign: appending(&s.Shares, parseShare),
			help: "Directory that peers may use, with ro (the default), wo or rw, nooverwrite, max-bytes=SIZE and " +
				"max-entries=COUNT; may be repeated"},
		representorsOption(&s.Representors),
		listenOption(&s.Listen, "Serve other machines at this address, or at all with :PORT; the default port is "+
			"7483. Without -p and -r no device is served then"),
		{group: ServeFlags, name: "path", value: "LIST", fallback: string(PathAuto), json: jsonText,
			assign: into(&s.Paths, parsePathList), words: permittedPaths, several: true,
			help: "Permitted paths of file data, with commas: dma and fast of a device; tls, tcp, am and rma to " +
				"other machines. auto, and a list without any of a kind, is dma, fast and tls; tcp does not encrypt, " +
				"and am and rma are for machines that trust each other"},
	}
}

func listenOption(listen *netip.AddrPort, help string) option {
	return option{
		group: ServeFlags, name: "listen", value: "ADDRESS:PORT", json: jsonText,
		assign: into(listen, parseListen),
		help:   help,
	}
}

func (s *Serve) limitOptions() []option {
	return []option{
		{group: ServeFlags, name: "max-connections", value: "COUNT", fallback: "64", json: jsonNumber,
			assign: into(&s.MaxConnections, parseAtLeastOne),
			help:   "Connections at once; more are refused"},
		{group: ServeFlags, name: "max-key-connections", value: "COUNT", fallback: "16", json: jsonNumber,
			assign: into(&s.MaxKeyConnections, parseAtLeastOne),
			help:   "The same of one key"},
		{group: ServeFlags, name: "max-transfers", value: "COUNT", fallback: "4", json: jsonNumber,
			assign: into(&s.MaxTransfers, parseAtLeastOne),
			help:   "Copies at once; more wait, and keys take turns"},
		{group: ServeFlags, name: "max-memory", value: "SIZE", fallback: "1GiB", json: jsonNumber,
			assign: into(&s.MaxMemory, parseMostBytes),
			help:   "Buffers of all connections; 0 is no limit"},
		{group: ServeFlags, name: "drain-timeout", value: "DURATION", fallback: "30s", json: jsonText,
			assign: into(&s.DrainTimeout, parseLimit),
			help:   "Time for running copies to end after SIGTERM; then they are stopped, and can be resumed"},
	}
}

func (s *Serve) watchOptions() []option {
	return []option{
		{group: ServeFlags, name: "metrics", value: "ADDRESS", json: jsonText,
			assign: into(&s.Metrics, parseMetrics),
			help:   "Serve metrics for Prometheus on a loopback address such as 127.0.0.1:9469, or on unix:PATH"},
		switchOption(ServeFlags, "status-page", &s.StatusPage,
			"At the address of --metrics, also serve a page for browsers: peers, paths, rates, failures. "+
				"Every user of this machine can read a loopback address"),
		fileOption(ServeFlags, "audit-log", "FILE", &s.AuditLog, "Append a JSON line for each request; - is stderr"),
		runtimeDirOption(&s.RuntimeDir, "Directory of the lock that keeps a second "+
			"daemon from starting, and of the socket; default RUNTIME_DIRECTORY, else /run/dma-copy "+
			"(root), else XDG_RUNTIME_DIR/dma-copy, else /tmp/dma-copy-UID"),
		socketOption(&s.Socket, "Socket for dma-copy status; default status.sock in the runtime directory"),
	}
}

// serveHelp has the options of a copy that serve has, too, with the help where it is another there.
var serveHelp = map[string]string{
	"log-level": "", "log-format": "", "sdk-log-level": "", "json": "",
	"driver": "", "require-hw": "", "doca-libdir": "", "pci-addr": "", "role": "", "numa": "", "cores": "",
	"chunk":        "Bytes per DMA task, such as 65536, 256KiB or 1M (1024 to the K); 0 is automatic",
	"depth":        "DMA tasks in flight of a connection; 0 is automatic",
	"idle-timeout": "Timeout of a copy without progress",
	"digest":       "At least this digest is compared in each copy; auto is blake3, or crc32c with --auth none",
	"verify":       "readback: read each pushed file back from the disk before the final rename",
	"durability":   "What to flush (fsync) at least before success of a push: nothing, the file, its directory too",
	"sparse":       "never: fill holes of pushed files with zeros",
	"max-bytes":    "Refuse a larger file or tree; 0 is no limit",
	"max-holes":    "",
	"max-entries":  "Refuse a tree with more entries; 0 is no limit",
	"quiet":        "Print neither the ready line nor texts of pings",
	"bwlimit":      "Bandwidth limit of all copies together in bytes per second, such as 100MiB; 0 is no limit",
}

// options implements Settings.
func (s *Serve) options() []option {
	return slices.Concat(withAutoDigest(withHelp(s.Copy.options(), serveHelp)), s.shareOptions(),
		s.Network.options(), identityOptions(&s.Keys, &s.Auth), s.limitOptions(), s.watchOptions())
}

// withHelp returns those options of a table that a map of help names, with the last help for them that is not empty.
func withHelp(table []option, help ...map[string]string) []option {
	var kept []option
	for _, opt := range table {
		named := false
		for _, texts := range help {
			text, has := texts[opt.name]
			named = named || has
			opt.help = cmp.Or(text, opt.help)
		}
		if named {
			kept = append(kept, opt)
		}
	}
	return kept
}

// withAutoDigest makes auto the default of --digest.
func withAutoDigest(table []option) []option {
	for i := range table {
		if table[i].name == "digest" {
			table[i].fallback = digestAuto
		}
	}
	return table
}

func parseShare(text string) (share.Share, error) {
	s, err := share.Parse(text)
	if err != nil {
		return s, fmt.Errorf("not a share: %w", err)
	}
	return s, nil
}

func parseAtLeastOne(text string) (int, error) {
	if countPattern().MatchString(text) {
		if count, err := strconv.ParseInt(text, 10, 32); err == nil && count >= 1 {
			return int(count), nil
		}
	}
	return 0, errors.New("not a count; give a whole number from 1 on, such as 16")
}
