package config

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Table implements Settings. The direction is part of the command, and the other side is a daemon. sync always
// replaces what differs, so it has no option for that.
func (s *Transfer) Table() []option.Option {
	path := pathOption(option.NativeFlags, &s.Path,
		"How file data is copied: by DMA or over Comch producers and consumers (fast); to another machine over TLS, "+
			"or if the daemon permits it without encryption: over TCP, by UCX's active messages (am) or by RDMA "+
			"(rma). auto is tls; over a device it is dma if both sides support it, otherwise fast", everyPath())
	var own []option.Option
	switch s.Kind {
	case Push:
		own = append(s.existingOptions(oneCommand), s.Fleet.Table()...)
	case Pull:
		own = s.existingOptions(oneCommand)
	case Sync:
		own = s.deleteOptions()
	}
	return slices.Concat(generalOptions(&s.Logging, &s.Driver), s.engineOptions(), s.peerOptions(path),
		s.demandOptions(), s.commandOptions(oneCommand), []option.Option{makePathOption(&s.Options.MakePath)}, own,
		s.Contact.Table(), s.Network.Table())
}

func (s *Transfer) deleteOptions() []option.Option {
	return []option.Option{
		{Group: option.AddedFlags, Name: "delete", Default: "false", JSON: option.JSONForced, Assign: s.setDelete,
			Excludes: []string{"files-from"},
			Help: "After a copy without failures: delete from DST what SRC does not have, unless a pattern excludes " +
				"it. Refused at the root of a share, if SRC is empty, and for more than half of DST, except with " +
				"--max-delete or as --delete=force, which does not ask either"},
		option.Count(option.AddedFlags, "max-delete", &s.MaxDelete, "", 1, option.MaxCount,
			"Delete up to COUNT entries, and nothing if it were more"),
	}
}

// setDelete sets what --delete means.
func (s *Transfer) setDelete(text string) (err error) {
	if s.Force = text == "force"; s.Force {
		s.Delete = true
		return nil
	}
	if s.Delete, err = option.ParseSwitch(text); err != nil {
		return errors.New("give nothing, or =force")
	}
	return nil
}

// Table returns the options of every command that talks to a daemon.
func (s *Contact) Table() []option.Option {
	return append(identityOptions(&s.Keys, &s.Auth), option.Switch(option.AddedFlags, "trust-first", &s.TrustFirst,
		"Trust the key of a daemon where none is trusted yet: compare its words with those that dma-copy keys show "+
			"prints on the other side"))
}

// identityOptions select the keys of this side and whether the peer must have one that is trusted.
func identityOptions(keys *string, auth *AuthChoice) []option.Option {
	return []option.Option{
		option.Directory(option.AddedFlags, "keys", keys,
			"Directory of this side's key and of the trusted keys, see dma-copy keys --help"),
		option.Choice(option.AddedFlags, "auth", auth, AuthKeys,
			"keys: the peer must have a trusted key; none: anybody may be the peer", AuthKeys, AuthNone),
	}
}

// Table implements Settings.
func (s *List) Table() []option.Option {
	return s.Places.with(
		option.WithLetter("l", option.Switch(option.AddedFlags, "long", &s.Long,
			"Also list kind and mode, size and modification time")),
		option.Switch(option.AddedFlags, "recursive", &s.Recursive, "List directories with everything below them"),
		option.Output(&s.Output, "Results as text, or as JSON lines, on stdout"),
	)
}

// Table implements Settings.
func (s *MakeDir) Table() []option.Option {
	return s.Places.with(
		option.WithLetter("p", option.Switch(option.AddedFlags, "parents", &s.Parents,
			"Create missing directories above it, too; one that exists is no failure")),
		option.Output(&s.Output, outputOfChanges),
	)
}

// Table implements Settings.
func (s *Remove) Table() []option.Option {
	return s.Places.with(
		option.WithLetter("r", option.Switch(option.AddedFlags, "recursive", &s.Recursive,
			"Remove directories with all that is in them")),
		option.WithLetter("f", option.Switch(option.AddedFlags, "force", &s.Force,
			"Do not ask, and take what does not exist for removed")),
		option.Output(&s.Output, outputOfChanges),
	)
}

const outputOfChanges = "text prints failures only; json is a line for each change or failure on stdout"

// with returns the options of a command in shares. Where one of its own has the letter of a common one, as users of the
// command of that name expect, the common one has none.
func (s *Places) with(own ...option.Option) []option.Option {
	common := append(commonOptions(&s.Logging, &s.Driver), s.Reach.Table()...)
	for i := range common {
		for _, opt := range own {
			if opt.Short == common[i].Short {
				common[i].Short = ""
			}
		}
	}
	return slices.Concat(common, own, []option.Option{s.Network.trafficClassOption()}, s.Contact.Table())
}

// shareOptions select what is served, and to whom.
func (s *Serve) shareOptions() []option.Option {
	return []option.Option{
		{Group: option.ServeFlags, Name: "share", Value: "NAME=PATH[,RIGHTS]", JSON: option.JSONList, List: "share",
			Assign: option.Appending(&s.Shares, option.ParseAs("a share", share.Parse)),
			Help: "Directory that peers may use, with ro (the default), wo or rw, nooverwrite, max-bytes=SIZE and " +
				"max-entries=COUNT; may be repeated"},
		representorsOption(&s.Representors),
		listenOption(&s.Listen,
			"Serve other machines at this address, or at all with :PORT; the default port is 7483. Without -p and -r "+
				"no device is served then"),
		{Group: option.ServeFlags, Name: "path", Value: "LIST", Default: string(PathAuto), JSON: option.JSONText,
			Assign: option.Into(&s.Paths, parsePathList), Words: option.Texts(withAuto(everyPath())...), Several: true,
			Help: "Permitted paths of file data, with commas: dma and fast of a device; tls, tcp, am and rma to " +
				"other machines. auto, and a list without any of a kind, is dma, fast and tls; tcp does not encrypt, " +
				"and am and rma are for machines that trust each other"},
	}
}

func listenOption(listen *netip.AddrPort, help string) option.Option {
	return option.Text(option.ServeFlags, "listen", "ADDRESS:PORT", listen,
		option.ParseAs("an address", share.ParseListen), help)
}

func (s *Serve) limitOptions() []option.Option {
	return []option.Option{
		option.Count(option.ServeFlags, "max-connections", &s.MaxConnections, "64", 1, option.MaxCount,
			"Connections at once; more are refused"),
		option.Count(option.ServeFlags, "max-key-connections", &s.MaxKeyConnections, "16", 1, option.MaxCount,
			"The same of one key"),
		option.Count(option.ServeFlags, "max-transfers", &s.MaxTransfers, "4", 1, option.MaxCount,
			"Copies at once; more wait, and keys take turns"),
		option.Size(option.ServeFlags, "max-memory", &s.MaxMemory, "1GiB", "Buffers of all connections; 0 is no limit"),
		option.Duration(option.ServeFlags, "drain-timeout", &s.DrainTimeout, "30s", option.ParseLimit,
			"Time for running copies to end after SIGTERM; then they are stopped, and can be resumed"),
	}
}

func (s *Serve) watchOptions() []option.Option {
	return []option.Option{
		option.Text(option.ServeFlags, "metrics", "ADDRESS", &s.Metrics, parseMetrics,
			"Serve metrics for Prometheus on a loopback address such as 127.0.0.1:9469, or on unix:PATH"),
		option.Switch(option.ServeFlags, "status-page", &s.StatusPage,
			"At the address of --metrics, also serve a page for browsers: peers, paths, rates, failures. Every user "+
				"of this machine can read a loopback address"),
		option.File(option.ServeFlags, "audit-log", "FILE", &s.AuditLog,
			"Append a JSON line for each request; - is stderr"),
		option.Directory(option.ServeFlags, "runtime-dir", &s.RuntimeDir,
			"Directory of the lock that keeps a second daemon from starting, and of the socket; default "+
				"RUNTIME_DIRECTORY, else /run/dma-copy (root), else XDG_RUNTIME_DIR/dma-copy, else /tmp/dma-copy-UID"),
		option.File(option.AddedFlags, "socket", "PATH", &s.Socket,
			"Socket for dma-copy status; default status.sock in the runtime directory"),
	}
}

// Table implements Settings.
func (s *Serve) Table() []option.Option {
	return slices.Concat(generalOptions(&s.Logging, &s.Driver), s.engineOptions(), []option.Option{
		roleOption(&s.Role),
		option.Quiet(&s.Quiet, "Print neither the ready line nor texts of pings"),
		bandwidthOption(&s.Options.Bandwidth,
			"Bandwidth limit of all copies together in bytes per second, such as 100MiB; 0 is no limit"),
	}, s.demandOptions(), s.shareOptions(), s.Network.Table(), identityOptions(&s.Keys, &s.Auth), s.limitOptions(),
		s.watchOptions())
}
