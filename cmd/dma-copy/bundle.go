package main

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

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/bundle"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exchange"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/status"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

func bundleCommand() command {
	var s config.Bundle
	return command{
		name:    "bundle",
		summary: "Collect what a bug report needs, in one archive",
		takes:   []string{"[FILE]"},
		about: `Writes a .tar.gz for a bug report: versions, devices, findings of doctor,
settings and their origin, and facts about kernel and drivers. Keys and the
word of --with are left out. The list of its content is printed before it is
written, to FILE or to dma-copy-bundle-HOST-TIME.tar.gz.
`,
		examples: `$ dma-copy bundle --list
host$ dma-copy -p b1:00.1 -f image.bin -l TRACE -o json > events 2> trace
host$ dma-copy bundle --peer -p b1:00.1 --events-file events --log-file trace
dpu$  dma-copy bundle --peer -p 03:00.1 -r b1:00.1
`,
		settings: &s,
		run: func(ctx context.Context, streams streams, args []string, log zerolog.Logger) error {
			return runBundle(ctx, streams, s, args, log)
		},
	}
}

func runBundle(ctx context.Context, streams streams, s config.Bundle, args []string, log zerolog.Logger) error {
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
	if s.ListOnly {
		_, err := listBundle(ctx, streams, s, log)
		return err
	}
	file, err := fileio.Create(path, s.Overwrite)
	if err != nil {
		return err
	}
	defer file.Discard()
	parts, err := listBundle(ctx, streams, s, log)
	if err != nil {
		return err
	}
	if streams.terminal && streams.asks() {
		yes, err := ask(ctx, streams.stdin, streams.stderr, "write this to "+quote.Text(path)+"?",
			func() error { return nil })
		if err != nil {
			return err
		}
		if !yes {
			return exit.Errorf(exit.Usage, "", "nothing was written: the answer was not yes")
		}
	}
	return writeBundle(ctx, streams, file, path, directory, now, parts)
}

// listBundle makes the parts and prints what they are.
func listBundle(
	ctx context.Context, streams streams, s config.Bundle, log zerolog.Logger,
) ([]bundle.Part, error) {
	parts, err := bundleParts(ctx, streams, s, log)
	if err != nil {
		return nil, err
	}
	if s.HideNames {
		parts = bundle.HideNames(parts)
	}
	if _, err := io.WriteString(streams.stdout, bundle.List(parts)); err != nil {
		return nil, fmt.Errorf("print the list: %w", err)
	}
	return parts, nil
}

func writeBundle(
	ctx context.Context, streams streams, file *fileio.Replacement, path, directory string, at time.Time,
	parts []bundle.Part,
) error {
	var archive bytes.Buffer
	if err := bundle.Write(&archive, directory, at, parts); err != nil {
		return err // out of memory is no error; there is no other
	}
	size := archive.Len()
	if _, err := archive.WriteTo(file); err != nil {
		return err
	}
	if err := file.Commit(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintf(streams.stdout, "%s  %s\n", quote.Printable(path), quantity.Bytes(uint64(size)))
	return err
}

// bundleParts makes the parts. A command that fails has its error as its part; only a file that the user named must be
// readable.
func bundleParts(
	ctx context.Context, streams streams, s config.Bundle, log zerolog.Logger,
) (parts []bundle.Part, err error) {
	add := func(name, about string, write func(w io.Writer) error) {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
		}
		parts = append(parts, bundle.Part{Name: name, About: about, Content: out.Bytes()})
	}
	add("version.json", "versions, and the driver of a copy", func(w io.Writer) error {
		about := versionsOf(s.Driver.LibraryDir)
		about.Driver, about.UCX = findDriver(s.Driver.Options()), findUCX()
		return about.print(w, config.OutputJSON)
	})
	add("devices.json", "devices, representors and capabilities", func(w io.Writer) error {
		return inventory.Look(s.Driver.Options(), func(driver *doca.Driver) error {
			found, err := inventory.Take(driver)
			if err != nil {
				return err
			}
			return inventory.Write(w, found, config.OutputJSON)
		})
	})
	add("doctor.json", "findings of doctor, with -p also of --probe", func(w io.Writer) error {
		return runDoctor(ctx, streams, w, s.Doctor(), log)
	})
	for _, of := range []string{configCopy, "serve"} {
		add("config-"+of+".txt", "settings of "+of+" with their origin; keys left out", func(w io.Writer) error {
			return writeSettings(w, streams, of, s.ParameterFile)
		})
	}
	add("environment.txt", "variables of dma-copy, of UCX and of the loader", func(w io.Writer) error {
		return writeVariables(w, streams)
	})
	add("status.json", "what the daemon of this machine does", func(w io.Writer) error {
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		doc, err := status.Fetch(ctx, statusSockets(config.Status{}, streams)...)
		if err != nil {
			return err
		}
		return status.WriteJSON(w, doc)
	})
	parts = append(parts, bundle.Part{
		Name: "machine.txt", About: "kernel, drivers, PCI functions of NVIDIA", Content: bundle.Machine(os.DirFS("/")),
	}, bundle.Part{
		Name: "kernel.log", About: "the kernel's messages about these drivers", Content: bundle.KernelLog(),
	})
	if s.Peer {
		parts = append(parts, peerParts(ctx, streams, s, parts, log)...)
	}
	for _, given := range []struct{ name, about, path string }{
		{"events.jsonl", "events of a run", s.EventsFile}, {"trace.log", "log of a run", s.LogFile},
	} {
		if given.path == "" {
			continue
		}
		content, err := bundle.ReadEnd(given.path)
		if err != nil {
			return nil, exit.Errorf(exit.Source, "", "read %s: %w", quote.Text(given.path), err)
		}
		parts = append(parts, bundle.Part{Name: given.name, About: given.about, Content: content})
	}
	return parts, nil
}

// bundleServer is the Comch server over which two bundles exchange their parts.
const bundleServer = "dma copy bundle"

// peerParts gives parts to the bundle of the other side and returns those of it. Without the other side there is one
// part, which says why.
func peerParts(
	ctx context.Context, streams streams, s config.Bundle, parts []bundle.Part, log zerolog.Logger,
) []bundle.Part {
	chosen := inventory.Selection{Device: s.Device, Representor: s.Representor, Role: config.RoleAuto}
	on, err := openSide(s.Driver, chosen, log)
	var theirs []byte
	if err == nil {
		wait := report.WaitForCommand(on.side, hostFunction(on, s.Representor), "dma-copy bundle --peer", s.Wait)
		stop := report.Waiting(wait, waitOutput(streams, config.OutputText, false, log), progressRequests(ctx))
		theirs, err = swapParts(ctx, exchange.Options{
			Side: on.side, Device: on.device, Representor: s.Representor, Name: bundleServer, Wait: s.Wait,
			Idle: s.Wait, Log: log,
		}, parts)
		stop()
		err = wait.Explain(err)
	}
	if err = on.end(err); err == nil {
		parts, err = bundle.Unpack(theirs)
	}
	if err != nil {
		log.Warn().Err(err).Msg("the bundle has no part of the other side")
		return []bundle.Part{{
			Name: "peer/error.txt", About: "why the other side has no part", Content: fmt.Appendf(nil, "%v\n", err),
		}}
	}
	return parts
}

func swapParts(ctx context.Context, o exchange.Options, parts []bundle.Part) (theirs []byte, err error) {
	conversation, err := exchange.Meet(ctx, o)
	if err != nil {
		return nil, err
	}
	theirs, err = conversation.Swap(ctx, "bundle", bundle.Pack(parts, exchange.MaxAnswer))
	return theirs, errors.Join(err, conversation.Close())
}

// secretSettings are options whose values are for the two sides alone.
var secretSettings = []string{"with", "text"}

// writeSettings writes the settings with which a command would run here, without keys and secrets.
func writeSettings(w io.Writer, streams streams, name, file string) error {
	settings, err := shownSettings(name)
	if err != nil {
		return err
	}
	values, err := settingsWithOrigins(name, settings, streams, fileArguments(file))
	if err != nil {
		return err
	}
	for i, v := range values {
		isKey := strings.HasPrefix(v.Name, "peers.") && strings.HasSuffix(v.Name, ".key")
		if v.Text != "" && (isKey || slices.Contains(secretSettings, v.Name)) {
			values[i].Text = "(left out)"
		}
	}
	_, err = io.WriteString(w, textValues(values))
	return err
}

func fileArguments(file string) []string {
	if file == "" {
		return nil
	}
	return []string{"--json", file}
}

// writeVariables writes the variables that change what a copy does. Those of options with secrets are left out.
func writeVariables(w io.Writer, streams streams) error {
	if streams.environ == nil {
		return nil
	}
	variables := streams.environ()
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
