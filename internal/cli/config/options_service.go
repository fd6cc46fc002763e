package config

import (
	"errors"
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Table implements Settings. The direction is part of the command, and the other side is a daemon. sync always
// replaces what differs, so it has no option for that.
func (s *Transfer) Table() []option.Option {
	path := device.PathOption(option.NativeFlags, &s.Path,
		"How file data is copied: by DMA or over Comch producers and consumers (fast); to another machine over TLS, "+
			"or if the daemon permits it without encryption: over TCP, by UCX's active messages (am) or by RDMA "+
			"(rma). auto is tls; over a device it is dma if both sides support it, otherwise fast", device.EveryPath())
	var own []option.Option
	switch s.Kind {
	case Push:
		own = append(s.ExistingOptions(copying.OneCommand), s.Fleet.Table()...)
	case Pull:
		own = s.ExistingOptions(copying.OneCommand)
	case Sync:
		own = s.deleteOptions()
	}
	return slices.Concat(device.GeneralOptions(&s.Logging, &s.Driver), s.EngineOptions(), s.PeerOptions(path),
		s.DemandOptions(), s.CommandOptions(copying.OneCommand),
		[]option.Option{copying.MakePathOption(&s.Options.MakePath)}, own,
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

// Table implements Settings.
func (s *List) Table() []option.Option {
	return s.Places.With(
		option.WithLetter("l", option.Switch(option.AddedFlags, "long", &s.Long,
			"Also list kind and mode, size and modification time")),
		option.Switch(option.AddedFlags, "recursive", &s.Recursive, "List directories with everything below them"),
		option.Output(&s.Output, "Results as text, or as JSON lines, on stdout"),
	)
}

// Table implements Settings.
func (s *MakeDir) Table() []option.Option {
	return s.Places.With(
		option.WithLetter("p", option.Switch(option.AddedFlags, "parents", &s.Parents,
			"Create missing directories above it, too; one that exists is no failure")),
		option.Output(&s.Output, contact.OutputOfChanges),
	)
}

// Table implements Settings.
func (s *Remove) Table() []option.Option {
	return s.Places.With(
		option.WithLetter("r", option.Switch(option.AddedFlags, "recursive", &s.Recursive,
			"Remove directories with all that is in them")),
		option.WithLetter("f", option.Switch(option.AddedFlags, "force", &s.Force,
			"Do not ask, and take what does not exist for removed")),
		option.Output(&s.Output, contact.OutputOfChanges),
	)
}

// shareOptions select what is served, and to whom.
func (s *Serve) shareOptions() []option.Option {
	return []option.Option{
		{Group: option.ServeFlags, Name: "share", Value: "NAME=PATH[,RIGHTS]", JSON: option.JSONList, List: "share",
			Assign: option.Appending(&s.Shares, option.ParseAs("a share", share.Parse)),
			Help: "Directory that peers may use, with ro (the default), wo or rw, nooverwrite, max-bytes=SIZE and " +
				"max-entries=COUNT; may be repeated"},
		device.Representors(&s.Representors),
		contact.ListenOption(&s.Listen,
			"Serve other machines at this address, or at all with :PORT; the default port is 7483. Without -p and -r "+
				"no device is served then"),
		{Group: option.ServeFlags, Name: "path", Value: "LIST", Default: string(device.PathAuto), JSON: option.JSONText,
			Assign: option.Into(&s.Paths, device.ParsePathList),
			Words:  option.Texts(device.WithAuto(device.EveryPath())...), Several: true,
			Help: "Permitted paths of file data, with commas: dma and fast of a device; tls, tcp, am and rma to " +
				"other machines. auto, and a list without any of a kind, is dma, fast and tls; tcp does not encrypt, " +
				"and am and rma are for machines that trust each other"},
	}
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
	return slices.Concat(device.GeneralOptions(&s.Logging, &s.Driver), s.EngineOptions(), []option.Option{
		device.RoleOption(&s.Role),
		option.Quiet(&s.Quiet, "Print neither the ready line nor texts of pings"),
		option.Rate(option.NativeFlags, "bwlimit", &s.Options.Bandwidth, "0",
			"Bandwidth limit of all copies together in bytes per second, such as 100MiB; 0 is no limit"),
	}, s.DemandOptions(), s.shareOptions(), s.Network.Table(), contact.IdentityOptions(&s.Keys, &s.Auth),
		s.limitOptions(),
		s.watchOptions())
}
