package config

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/dma-copy/dma-copy/internal/share"
)

// options implements Settings. The direction is part of the command, and the other side is a daemon. sync always
// replaces what differs, so it has no option for that.
func (s *Transfer) options() []option {
	path := pathOption(NativeFlags, &s.Path, "How file data is copied: by DMA or over Comch producers and consumers "+
		"(fast); to another machine over TLS, or if the daemon permits it without encryption: over TCP, by UCX's "+
		"active messages (am) or by RDMA (rma). auto is tls; over a device it is dma if both sides support it, "+
		"otherwise fast", everyPath())
	var own []option
	switch s.Kind {
	case Push:
		own = append(s.existingOptions(oneCommand), s.Fleet.options()...)
	case Pull:
		own = s.existingOptions(oneCommand)
	case Sync:
		own = s.deleteOptions()
	}
	return slices.Concat(generalOptions(&s.Logging, &s.Driver), s.engineOptions(), s.peerOptions(path),
		s.demandOptions(), s.commandOptions(oneCommand), []option{makePathOption(&s.Options.MakePath)}, own,
		s.Contact.options(), s.Network.options())
}

func (s *Transfer) deleteOptions() []option {
	return []option{
		{group: AddedFlags, name: "delete", fallback: "false", json: jsonForced, assign: s.setDelete,
			help: "After a copy without failures: delete from DST what SRC does not have, unless a pattern excludes " +
				"it. Refused at the root of a share, if SRC is empty, and for more than half of DST, except with " +
				"--max-delete or as --delete=force, which does not ask either"},
		countOption(AddedFlags, "max-delete", &s.MaxDelete, "", 1, maxCount,
			"Delete up to COUNT entries, and nothing if it were more"),
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
		directoryOption(AddedFlags, "keys", keys,
			"Directory of this side's key and of the trusted keys, see dma-copy keys --help"),
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
	common := append(commonOptions(&s.Logging, &s.Driver), s.Reach.options()...)
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
			assign: appending(&s.Shares, parseAs("a share", share.Parse)),
			help: "Directory that peers may use, with ro (the default), wo or rw, nooverwrite, max-bytes=SIZE and " +
				"max-entries=COUNT; may be repeated"},
		representorsOption(&s.Representors),
		listenOption(&s.Listen, "Serve other machines at this address, or at all with :PORT; the default port is "+
			"7483. Without -p and -r no device is served then"),
		{group: ServeFlags, name: "path", value: "LIST", fallback: string(PathAuto), json: jsonText,
			assign: into(&s.Paths, parsePathList), words: textsOf(withAuto(everyPath())...), several: true,
			help: "Permitted paths of file data, with commas: dma and fast of a device; tls, tcp, am and rma to " +
				"other machines. auto, and a list without any of a kind, is dma, fast and tls; tcp does not encrypt, " +
				"and am and rma are for machines that trust each other"},
	}
}

func listenOption(listen *netip.AddrPort, help string) option {
	return textOption(ServeFlags, "listen", "ADDRESS:PORT", listen, parseAs("an address", share.ParseListen), help)
}

func (s *Serve) limitOptions() []option {
	return []option{
		countOption(ServeFlags, "max-connections", &s.MaxConnections, "64", 1, maxCount,
			"Connections at once; more are refused"),
		countOption(ServeFlags, "max-key-connections", &s.MaxKeyConnections, "16", 1, maxCount, "The same of one key"),
		countOption(ServeFlags, "max-transfers", &s.MaxTransfers, "4", 1, maxCount,
			"Copies at once; more wait, and keys take turns"),
		sizeOption(ServeFlags, "max-memory", &s.MaxMemory, "1GiB", "Buffers of all connections; 0 is no limit"),
		durationOption(ServeFlags, "drain-timeout", &s.DrainTimeout, "30s", parseLimit,
			"Time for running copies to end after SIGTERM; then they are stopped, and can be resumed"),
	}
}

func (s *Serve) watchOptions() []option {
	return []option{
		textOption(ServeFlags, "metrics", "ADDRESS", &s.Metrics, parseMetrics,
			"Serve metrics for Prometheus on a loopback address such as 127.0.0.1:9469, or on unix:PATH"),
		switchOption(ServeFlags, "status-page", &s.StatusPage,
			"At the address of --metrics, also serve a page for browsers: peers, paths, rates, failures. "+
				"Every user of this machine can read a loopback address"),
		fileOption(ServeFlags, "audit-log", "FILE", &s.AuditLog, "Append a JSON line for each request; - is stderr"),
		directoryOption(ServeFlags, "runtime-dir", &s.RuntimeDir, "Directory of the lock that keeps a second "+
			"daemon from starting, and of the socket; default RUNTIME_DIRECTORY, else /run/dma-copy "+
			"(root), else XDG_RUNTIME_DIR/dma-copy, else /tmp/dma-copy-UID"),
		fileOption(AddedFlags, "socket", "PATH", &s.Socket,
			"Socket for dma-copy status; default status.sock in the runtime directory"),
	}
}

// options implements Settings.
func (s *Serve) options() []option {
	return slices.Concat(generalOptions(&s.Logging, &s.Driver), s.engineOptions(), []option{
		roleOption(&s.Role),
		quietOption(&s.Quiet, "Print neither the ready line nor texts of pings"),
		bandwidthOption(&s.Options.Bandwidth,
			"Bandwidth limit of all copies together in bytes per second, such as 100MiB; 0 is no limit"),
	}, s.demandOptions(), s.shareOptions(), s.Network.options(), identityOptions(&s.Keys, &s.Auth), s.limitOptions(),
		s.watchOptions())
}
