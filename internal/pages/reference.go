package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/daemon/metrics"
	"github.com/dma-copy/dma-copy/internal/exit"
)

const mark = "<!-- Written by make reference. -->\n\n"

// writeReference writes the reference pages into a directory, above which the schema of events is.
func writeReference(p *root.Program, directory string) error {
	events, err := eventsPage(filepath.Join(directory, "..", "events.schema.json"))
	if err != nil {
		return fmt.Errorf("read the schema of events: %w", err)
	}
	pages := map[string]string{
		"config.md": configPage(p), "environment.md": environmentPage(p), "exit-codes.md": exitCodesPage(),
		"metrics.md": metricsPage(), "events.md": events,
	}
	for _, c := range append([]root.Command{p.Copy}, p.Commands...) {
		pages[pageOf(c)] = commandPage(c)
	}
	for name, text := range pages {
		pages[name] = mark + text
	}
	return write(directory, pages)
}

// pageOf returns the path of the page of a command.
func pageOf(c root.Command) string {
	if c.Name == "" {
		return "commands/" + root.CopyName + ".md"
	}
	return "commands/" + c.Name + ".md"
}

// commandPage returns the page of a command, or of a copy.
func commandPage(c root.Command) string {
	title, usage, about := "dma-copy "+c.Name, c.Usage(), c.About
	if c.Name == "" {
		title = "dma-copy"
		usage, about, _ = strings.Cut(root.Introduction, "\n\n")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\n```\n%s\n```\n\n%s", title, strings.TrimSpace(usage), prose(about))
	if c.List != nil {
		text.WriteString("\n")
		writeTable(&text, []string{"", ""}, rowsOf(c.List))
	}
	if c.Notes != "" {
		text.WriteString("\n" + prose(c.Notes))
	}
	text.WriteString("\n## Flags\n\n")
	writeFlags(&text, append(root.OwnFlags(c), option.Everydays(c.Settings)...))
	for _, block := range option.ByTopic(c.Settings) {
		text.WriteString("\n### " + block.Title + "\n\n")
		writeFlags(&text, block.List)
	}
	text.WriteString("\nA flag marked † needs `dma-copy` on both sides, as a daemon is.\n" +
		"Each flag but those for help and version is also a [key](../config.md) and a\n" +
		"[variable](../environment.md). See the [exit codes](../exit-codes.md).\n")
	text.WriteString("\n## Examples\n\n```\n" + c.Examples + "```\n")
	return text.String()
}

func writeFlags(text *strings.Builder, list []option.Described) {
	var rows [][]string
	for _, d := range list {
		names := "`" + strings.Join(d.Names, "`, `") + "`"
		if d.Value != "" {
			names = strings.TrimSuffix(names, "`") + " " + d.Value + "`"
		}
		if d.Native {
			names += " †"
		}
		fallback := strings.TrimSuffix(strings.TrimPrefix(d.Default, "(default "), ")")
		if fallback != "" {
			fallback = "`" + fallback + "`"
		}
		rows = append(rows, []string{names, fallback, prose(d.Help)})
	}
	writeTable(text, []string{"Flag", "Default", "Meaning"}, rows)
}

// configPage returns the page of the parameter file.
func configPage(p *root.Program) string {
	var text strings.Builder
	text.WriteString("# Parameter file\n\nThe keys of a parameter file (`--json FILE`) and of " +
		"`/etc/dma-copy/config.json`, by group.\n\n```\n" + root.ParameterFileExample + "```\n")
	for _, group := range p.Settings().DescribeFile() {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n", group.Name, group.About)
		var rows [][]string
		for _, key := range group.Keys {
			rows = append(rows, []string{"`" + key.Term + "`", key.Kind, prose(key.Text)})
		}
		if rows != nil {
			text.WriteString("\n")
			writeTable(&text, []string{"Key", "Type", "Meaning"}, rows)
		}
	}
	return text.String()
}

// environmentPage returns the page of the variables.
func environmentPage(p *root.Program) string {
	var text strings.Builder
	text.WriteString("# Environment\n\n")
	writeTable(&text, []string{"Variable", "Meaning"}, rowsOf(root.Environment()))
	text.WriteString("\n## Software device, kit and completion\n\n")
	var others [][]string
	for _, v := range option.OtherVariables {
		if !v.Everyday {
			others = append(others, []string{"`" + v.Name + "`", prose(v.Text)})
		}
	}
	writeTable(&text, []string{"Variable", "Meaning"}, others)
	text.WriteString("\n## Variables of flags\n\n")
	var rows [][]string
	for _, v := range p.Settings().Variables() {
		rows = append(rows, []string{"`" + v.Name + "`", "`--" + v.Flag + "`", prose(v.Help)})
	}
	writeTable(&text, []string{"Variable", "Flag", "Meaning"}, rows)
	return text.String()
}

// exitCodesPage returns the page of the exit codes.
func exitCodesPage() string {
	var text strings.Builder
	text.WriteString("# Exit codes\n\nBoth sides of a copy end with the same code for the same cause. " +
		"2 is not used: Go's runtime ends with it when it crashes.\n\n")
	var rows [][]string
	for _, m := range exit.Meanings {
		meaning := prose(m.Text)
		if m.More != "" {
			meaning += "; " + m.More
		}
		rows = append(rows, []string{m.Codes, meaning})
	}
	writeTable(&text, []string{"Code", "Meaning"}, rows)
	return text.String()
}

// metricsPage returns the page of the daemon's metrics.
func metricsPage() string {
	var text strings.Builder
	text.WriteString("# Metrics\n\n`dma-copy serve --metrics ADDRESS` serves these at `/metrics`: see " +
		"[the service](../guide/service.md#metrics).\n\n")
	var rows [][]string
	for _, d := range metrics.Descriptions {
		rows = append(rows, []string{"`" + d.Name + "`", d.Labels, prose(d.Text)})
	}
	writeTable(&text, []string{"Metric", "Labels", "Meaning"}, rows)
	return text.String() + "\n" + metricsNotes
}

const metricsNotes = "" +
	"`operation` is `push`, `pull`, `list`, `remove`, `mkdir`, `ping` or `measure`, as the peer asked, or" +
	" `dry_run` for a push or pull that transfers nothing: like a measurement, it needs a permit and runs" +
	" like a copy, but is not counted in bytes, entries, stages, chunks or the depth of the engine. " +
	"`direction` is `received` (push) or `sent` (pull). `code` is the [exit code](exit-codes.md) of the " +
	"command. `reason` is `key` (not trusted), `lost` (the peer left, or took too long), `protocol` (no " +
	"valid handshake or version), `limit`, `connection` (of another machine, and no service session) or " +
	"`other`. `stage` is `read`, `digest`, `copy`, `write`, `peer` or `rate_limit`. `what` is " +
	"`connection` or `request`. No label has text of a peer.\n\n" +
	"The usual metrics of processes (`process_*`: CPU time, memory, file descriptors, start time, " +
	"pressure) and of Go programs (`go_*`: goroutines, threads, memory, garbage collection) are served, " +
	"too; the log warns of those that cannot be read. " +
	"[examples/grafana](../../examples/grafana/README.md) has a dashboard and alerts.\n"

// rowsOf returns the rows of a list.
func rowsOf(list []option.Row) (rows [][]string) {
	for _, row := range list {
		rows = append(rows, []string{"`" + row.Term + "`", prose(row.Text)})
	}
	return rows
}

// writeTable writes a table of Markdown, without columns that are empty.
func writeTable(text *strings.Builder, head []string, rows [][]string) {
	lines := append([][]string{head, slices.Repeat([]string{"---"}, len(head))}, rows...)
	for column := len(head) - 1; column >= 0; column-- {
		filled := func(row []string) bool { return row[column] != "" }
		if !slices.ContainsFunc(rows, filled) {
			for i := range lines {
				lines[i] = slices.Delete(slices.Clone(lines[i]), column, column+1)
			}
		}
	}
	for _, line := range lines {
		for i := range line {
			line[i] = strings.ReplaceAll(line[i], "|", `\|`)
		}
		text.WriteString("| " + strings.Join(line, " | ") + " |\n")
	}
}

// prose escapes a text for Markdown.
func prose(text string) string { return markdown.Replace(text) }

var markdown = strings.NewReplacer("<", "&lt;", "*", `\*`, "~", `\~`, "\n- ", "\n\\- ")
