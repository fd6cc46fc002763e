package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/daemon/status"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/release"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Command returns the command bundle.
func Command(p *root.Program, examine Examiner) root.Command {
	var s Settings
	return root.Command{
		Name:    "bundle",
		Summary: "Collect what a bug report needs, in one archive",
		Takes:   []string{"[FILE]"},
		About: `Writes a .tar.gz for a bug report: versions, devices, findings of doctor,
settings and their origin, and facts about kernel and drivers. Keys and the
word of --with are left out, and file names are replaced by n1, n2, ...,
everywhere alike; a name in free text alone stays. The list of its content is
printed before it is written, to FILE or to dma-copy-bundle-HOST-TIME.tar.gz.
`,
		Examples: `$ dma-copy bundle --list
host$ dma-copy -p b1:00.1 -f image.bin -l TRACE -o json > events 2> trace
host$ dma-copy bundle --peer -p b1:00.1 --events-file events --log-file trace
dpu$  dma-copy bundle --peer -p 03:00.1 -r b1:00.1
`,
		Settings: &s,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			return runBundle(ctx, p, examine, streams, s, args, log)
		},
	}
}

func runBundle(
	ctx context.Context, p *root.Program, examine Examiner, streams root.Streams, s Settings, args []string,
	log zerolog.Logger,
) error {
	if len(args) > 1 {
		return exit.Usagef("unexpected argument %s: dma-copy bundle takes one FILE or none", quote.Text(args[1]))
	}
	now := time.Now().UTC()
	directory := "dma-copy-bundle-" + now.Format("20060102T150405Z")
	if host, err := os.Hostname(); err == nil {
		directory = "dma-copy-bundle-" + quote.Printable(host) + now.Format("-20060102T150405Z")
	}
	path := directory + ".tar.gz"
	if len(args) > 0 {
		path = args[0]
	}
	var file *fileio.Replacement
	if !s.ListOnly {
		var err error
		if file, err = fileio.Create(path, s.Overwrite); err != nil {
			return err
		}
		defer file.Discard()
	}
	b := collection{program: p, examine: examine, settings: s, streams: streams, log: log, hider: NewHider()}
	own, err := b.own(ctx)
	if err == nil {
		own, err = b.list(own)
	}
	if err != nil || s.ListOnly {
		return err
	}
	if err := b.confirm(ctx, path); err != nil {
		return err
	}
	parts := own
	if s.Peer {
		peers, err := b.list(b.peers(ctx, own))
		if err != nil {
			return err
		}
		parts = append(parts, peers...)
	}
	return writeBundle(ctx, streams, file, path, directory, now, parts)
}

// Examiner writes the findings of doctor as JSON, for this machine or, with peer, for both sides.
type Examiner func(
	ctx context.Context, streams root.Streams, w io.Writer, of device.Selected, peer bool, wait time.Duration,
	log zerolog.Logger,
) error

func (b *collection) examineDevice(ctx context.Context, w io.Writer, peer bool) error {
	s := b.settings
	of := device.Selected{Logging: s.Logging, Driver: s.Driver, Device: s.Device, Representor: s.Representor}
	return b.examine(ctx, b.streams, w, of, peer, s.Wait, b.log)
}

// collection is what a bundle is made of. Nothing leaves this machine before own parts are listed and confirmed.
type collection struct {
	program  *root.Program
	examine  Examiner
	settings Settings
	streams  root.Streams
	log      zerolog.Logger
	hider    *Hider
}

// list prints what the parts are, and returns them with the names of files hidden.
func (b *collection) list(parts []Part) ([]Part, error) {
	parts = b.hider.Hide(parts)
	if _, err := io.WriteString(b.streams.Stdout, List(parts)); err != nil {
		return nil, fmt.Errorf("print the list: %w", err)
	}
	return parts, nil
}

// confirm asks the user at a terminal.
func (b *collection) confirm(ctx context.Context, path string) error {
	if !b.streams.Terminal || !b.streams.Asks() {
		return nil
	}
	question := "write this to " + quote.Text(path) + "?"
	if b.settings.Peer {
		question = "write this to " + quote.Text(path) + ", and give the other side all but events and log?"
	}
	yes, err := root.Ask(ctx, b.streams.Stdin, b.streams.Stderr, question, func() error { return nil })
	if err == nil && !yes {
		err = exit.Errorf(exit.Usage, "", "nothing was written: the answer was not yes")
	}
	return err
}

func writeBundle(
	ctx context.Context, streams root.Streams, file *fileio.Replacement, path, directory string, at time.Time,
	parts []Part,
) error {
	var archive bytes.Buffer
	if err := Write(&archive, directory, at, parts); err != nil {
		return err // out of memory is no error; there is no other
	}
	size := archive.Len()
	if _, err := archive.WriteTo(file); err != nil {
		return err
	}
	if err := file.Commit(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintf(streams.Stdout, "%s  %s\n", quote.Printable(path), quantity.Bytes(uint64(size)))
	return err
}

// part returns a part that write writes. If that fails the part is what it has written, or else the error: documents in
// JSON have their failures in them.
func part(name, about string, write func(w io.Writer) error) Part {
	var out bytes.Buffer
	if err := write(&out); err != nil && out.Len() == 0 {
		fmt.Fprintf(&out, "error: %v\n", err)
	}
	return Part{Name: name, About: about, Content: out.Bytes()}
}

// The names of parts that stay on this side.
const (
	eventsPart = "events.jsonl"
	logPart    = "trace.log"
)

// own makes the parts of this side. Only a file that the user named must be readable.
func (b *collection) own(ctx context.Context) ([]Part, error) {
	s := b.settings
	parts := []Part{
		part("version.json", "versions, and the driver of a copy", func(w io.Writer) error {
			about := inventory.VersionsOf(release.Version(), s.Driver.LibraryDir)
			about.Driver, about.UCX = inventory.FindDriver(s.Driver.Options()), inventory.FindUCX()
			return output.Print(w, option.OutputJSON, "version", about, "")
		}),
		part("devices.json", "devices, representors and capabilities", func(w io.Writer) error {
			return inventory.Look(s.Driver.Options(), func(driver *doca.Driver) error {
				found, err := inventory.Take(driver)
				if err != nil {
					return err
				}
				return output.Print(w, option.OutputJSON, "devices", found, "")
			})
		}),
		part("doctor.json", "findings of doctor, with -p also of --probe", func(w io.Writer) error {
			return b.examineDevice(ctx, w, false)
		}),
		b.settingsOf(root.CopyName),
		b.settingsOf("serve"),
		part("environment.txt", "variables of dma-copy, of UCX and of the loader", func(w io.Writer) error {
			return writeVariables(w, b.streams)
		}),
		part("status.json", "what the daemon of this machine does", func(w io.Writer) error {
			return b.writeStatus(ctx, w)
		}),
		{
			Name: "machine.txt", About: "kernel, drivers, PCI functions of NVIDIA",
			Content: Machine(os.DirFS("/")),
		},
		{Name: "kernel.log", About: "the kernel's messages about these drivers", Content: KernelLog()},
	}
	for _, given := range []struct{ name, about, path string }{
		{eventsPart, "events of a run", s.EventsFile}, {logPart, "log of a run", s.LogFile},
	} {
		if given.path == "" {
			continue
		}
		content, err := ReadEnd(given.path)
		if err != nil {
			return nil, exit.Errorf(exit.Source, "", "cannot read %s: %s", quote.Text(given.path), disk.Reason(err))
		}
		parts = append(parts, Part{Name: given.name, About: given.about, Content: content})
	}
	return parts, nil
}

func (b *collection) writeStatus(ctx context.Context, w io.Writer) error {
	values, err := b.valuesOf("status")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, status.Timeout)
	defer cancel()
	socket, directory := textOf(values, "socket"), textOf(values, "runtime-dir")
	doc, err := status.Fetch(ctx, status.Sockets(socket, directory, b.streams.Env.Get)...)
	if err != nil {
		return err
	}
	return status.WriteJSON(w, doc)
}

// valuesOf returns the settings with which a command would run here.
func (b *collection) valuesOf(name string) ([]option.Value, error) {
	settings, err := b.program.SettingsOf(name)
	if err != nil {
		return nil, err
	}
	return b.program.SettingsWithOrigins(name, settings, b.streams, fileArguments(b.settings.ParameterFile))
}

// textOf returns the text of the value of an option.
func textOf(values []option.Value, name string) string {
	i := slices.IndexFunc(values, func(v option.Value) bool { return v.Name == name })
	return values[i].Text
}

// bundleServer is the Comch server over which two bundles exchange their parts.
const bundleServer = "dma copy bundle"

// peers makes the parts for which the other side is needed: the findings of both together, and the parts that it gives
// for the parts of this side. A part that is missing says why.
func (b *collection) peers(ctx context.Context, own []Part) []Part {
	var absent error
	findings := part("doctor-peer.json", "findings of doctor --probe --peer", func(w io.Writer) error {
		err := b.examineDevice(ctx, w, true)
		if exit.Code(err) == exit.Peer {
			absent = err
		}
		return err
	})
	var theirs []Part
	err := absent
	if err == nil {
		theirs, err = b.swap(ctx, own)
	}
	if err != nil {
		b.log.Warn().Err(err).Msg("the bundle has no parts of the other side")
		theirs = []Part{{
			Name: "peer/error.txt", About: "why the other side has no parts", Content: fmt.Appendf(nil, "%v\n", err),
		}}
	}
	return append([]Part{findings}, theirs...)
}

// swap gives the other side the parts of this side, and returns those that it has.
func (b *collection) swap(ctx context.Context, own []Part) ([]Part, error) {
	s := b.settings
	own = slices.DeleteFunc(slices.Clone(own), func(p Part) bool {
		return p.Name == eventsPart || p.Name == logPart
	})
	on, err := connect.Open(s.Driver.Options(), inventory.Selection{
		Device: s.Device, Representor: s.Representor, Role: inventory.RoleAuto,
	}, b.log)
	if err != nil {
		return nil, err
	}
	wait := report.WaitForCommand(on.Is, on.HostFunction(s.Representor), "dma-copy bundle --peer", s.Wait)
	stop := output.Waiting(wait, root.WaitOutput(b.streams, option.OutputText, false, b.log),
		root.ProgressRequests(ctx))
	theirs, err := swapPacked(ctx, ping.Meeting{
		Side: on.Is, Device: on.Device, Representor: s.Representor, Name: bundleServer, Wait: s.Wait,
		IdleTimeout: ping.Limit, Log: b.log,
	}, Pack(own, ping.MaxAnswer))
	stop()
	err = wait.Explain(err)
	if on.End(&err); err != nil {
		return nil, err
	}
	return Unpack(theirs)
}

func swapPacked(ctx context.Context, o ping.Meeting, own []byte) (theirs []byte, err error) {
	conversation, err := ping.Meet(ctx, o)
	if err != nil {
		return nil, err
	}
	theirs, err = conversation.Swap(ctx, "bundle", own)
	return theirs, errors.Join(err, conversation.Close())
}

// secretSettings are options whose values are for the two sides alone.
var secretSettings = []string{"with", "text"}

// settingsOf returns the settings with which a command would run here, without keys and secrets.
func (b *collection) settingsOf(name string) Part {
	about := "settings of " + name + " with their origin; keys left out"
	return part("config-"+name+".txt", about, func(w io.Writer) error {
		values, err := b.valuesOf(name)
		if err != nil {
			return err
		}
		for i, v := range values {
			if strings.HasPrefix(v.Text, "/") {
				b.hider.Add(v.Text)
			}
			if served, err := share.Parse(v.Text); name == "serve" && v.Name == "share" && err == nil {
				b.hider.Add(served.Path)
			}
			isKey := strings.HasPrefix(v.Name, "peers.") && strings.HasSuffix(v.Name, ".key")
			if v.Text != "" && (isKey || slices.Contains(secretSettings, v.Name)) {
				values[i].Text = "(left out)"
			}
		}
		_, err = io.WriteString(w, option.FormatValues(values))
		return err
	})
}

func fileArguments(file string) []string {
	if file == "" {
		return nil
	}
	return []string{"--json", file}
}

// writeVariables writes the variables that change a copy, without options that have secrets.
func writeVariables(w io.Writer, streams root.Streams) error {
	if streams.Environ == nil {
		return nil
	}
	variables := streams.Environ()
	slices.Sort(variables)
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		ours, isOurs := strings.CutPrefix(name, "DMA_COPY_")
		if !isOurs && !strings.HasPrefix(name, "UCX_") && name != "LD_LIBRARY_PATH" {
			continue
		}
		if slices.Contains(secretSettings, strings.ToLower(cmp.Or(ours, name))) {
			value = "(left out)"
		}
		if _, err := fmt.Fprintf(w, "%s=%s\n", name, quote.Printable(value)); err != nil {
			return err
		}
	}
	return nil
}
