package config

import (
	"net/netip"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/share"
)

// TransferKind is which of the commands that copy between this side and a share is meant.
type TransferKind uint8

// The kinds.
const (
	Push TransferKind = iota // from this side into a share
	Pull                     // from a share to this side
	Sync                     // either, of one source, to make the target the same
)

// String returns the name of the command.
func (k TransferKind) String() string { return [...]string{"push", "pull", "sync"}[k] }

// Transfer holds the settings of push, pull and sync: those of a copy that they have. All others of a copy are zero,
// except for File and Target, which are for one source.
type Transfer struct {
	copying.Settings
	contact.Contact
	Kind      TransferKind // decides which options there are, so it is set before they are loaded
	Sends     bool         // this side has the sources
	Local     []string     // the sources of this side, or the only target; Stream is a standard stream
	Remote    []share.Remote
	Expanded  bool // Remote has the names that the patterns of a pull match, and no patterns
	Delete    bool // what the target has and the source lacks
	Force     bool // delete whatever there is to delete, without a question
	MaxDelete int  // entries; 0, which cannot be given, is no limit
	Fleet
}

// Fleet holds how push copies to many peers. Remote then is the target of those without one of their own, or empty.
type Fleet struct {
	To       string // file with the list of peers, Stream for stdin; empty: one peer
	Parallel int    // copies of this side at once, 1 to MaxParallel
}

// List holds the settings of ls.
type List struct {
	contact.Places
	Long      bool
	Recursive bool
}

// MakeDir holds the settings of mkdir.
type MakeDir struct {
	contact.Places
	Parents bool // those above a directory are created, too, and it may exist
}

// Remove holds the settings of rm.
type Remove struct {
	contact.Places
	Recursive bool
	Force     bool // what does not exist is no failure, and nothing is asked
}

// Serve holds the settings of serve: those of a copy that it has, for the daemon's side of each copy. All others of a
// copy are zero.
type Serve struct {
	copying.Settings
	contact.Network
	Listen            netip.AddrPort // for other machines; not valid: not given
	Paths             []device.Path  // that are permitted; nil: auto
	Shares            []share.Share  // at least one after Validate, with names that differ
	Representors      []string       // DPU side; empty: not given
	Keys              string         // as for a Contact
	Auth              contact.AuthChoice
	MaxConnections    int   // at once; at least one
	MaxKeyConnections int   // at once of one key; at least one
	MaxTransfers      int   // at once; at least one
	MaxMemory         int64 // bytes of the buffers of all connections; 0 is no limit
	DrainTimeout      time.Duration
	Metrics           string // address; empty: none
	StatusPage        bool   // at the address of Metrics; only with one, after Validate
	AuditLog          string // file, Stream for stderr; empty: none
	RuntimeDir        string // empty: the default one
	Socket            string // empty: the default one

	file   string // of --json
	reload func() (*Serve, error)
}

// ParameterFile returns the path of the --json file, empty if there is none.
func (s *Serve) ParameterFile() string { return s.file }

// Reload returns the settings as they are now, by the same command line and environment and the files of today.
func (s *Serve) Reload() (*Serve, error) { return s.reload() }

// Loaded lets Reload load the settings again.
func (s *Serve) Loaded(l option.Loaded) {
	s.file = l.ParameterFile
	s.reload = func() (*Serve, error) {
		var now Serve
		if err := l.Again(&now); err != nil {
			return nil, err
		}
		return &now, now.Validate()
	}
}

// FileGroup returns the group of the parameter file that only serve reads.
func (s *Serve) FileGroup() string { return option.GroupServe }

// Config holds the settings of config.
type Config struct {
	option.Logging
	Output option.OutputForm
}
