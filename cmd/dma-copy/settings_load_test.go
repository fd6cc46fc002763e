package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/option"
)

// samples holds values of each option that differ from each other and from the default: one for a flag, one for the
// parameter file, one for the environment. A switch has two values only, so both orders are tested.
var samples = map[string][][3]string{
	"log-level":       {{"10", "20", "INFO"}},
	"sdk-log-level":   {{"trace", "60", "30"}},
	"pci-addr":        {{"b1:00.1", "b1:00.0", "mlx5_0"}},
	"rep-pci":         {{"b1:00.1", "b1:00.0", "mlx5_0"}},
	"file":            {{"by-flag", "by-file", "by-variable"}},
	"driver":          {{"doca", "soft", "doca"}, {"soft", "doca", "soft"}},
	"require-hw":      {{"true", "false", "true"}, {"false", "true", "false"}},
	"doca-libdir":     {{"/by-flag", "/by-file", "/by-variable"}},
	"role":            {{"host", "dpu", "host"}, {"dpu", "host", "dpu"}},
	"numa":            {{"0", "1", "off"}, {"off", "auto", "2"}},
	"cores":           {{"0", "0-1", "2,4-6"}},
	"wait":            {{"1s", "2s", "3s"}},
	"timeout":         {{"1s", "2s", "3s"}},
	"idle-timeout":    {{"1s", "2s", "3s"}},
	"chunk":           {{"1K", "2K", "3K"}},
	"depth":           {{"1", "2", "3"}},
	"lanes":           {{"1", "2", "3"}},
	"log-format":      {{"text", "json", "auto"}},
	"overwrite":       {{"true", "false", "true"}, {"false", "true", "false"}},
	"ignore-existing": {{"true", "false", "true"}, {"false", "true", "false"}},
	"backup":          {{"true", "false", "true"}, {"false", "true", "false"}},
	"allow-changing":  {{"true", "false", "true"}, {"false", "true", "false"}},
	"no-resume":       {{"true", "false", "true"}, {"false", "true", "false"}},
	"max-duration":    {{"1s", "2s", "3s"}},
	"max-bytes":       {{"1K", "2K", "3K"}},
	"max-holes":       {{"1K", "2K", "3K"}},
	"bwlimit":         {{"1M", "2M", "3M"}},
	"protocol":        {{"reference", "auto", "reference"}, {"auto", "reference", "auto"}},
	"output":          {{"json", "text", "json"}, {"text", "json", "text"}},
	"progress":        {{"never", "always", "auto"}},
	"digest":          {{"none", "xxh3", "sha256"}, {"xxh3", "none", "blake3"}},
	"expect":          {{"crc32c:00000001", "crc32c:00000002", "sha256:" + strings.Repeat("0a", 32)}},
	"with":            {{"red", "green", "blue"}},
	"verify":          {{"readback", "digest", "readback"}, {"digest", "readback", "digest"}},
	"durability":      {{"none", "file", "full"}, {"file", "none", "file"}},
	"sparse":          {{"never", "auto", "never"}, {"auto", "never", "auto"}},
	"preserve":        {{"owner", "xattr", "owner,xattr,links"}},
	"cpuprofile":      {{"by-flag", "by-file", "by-variable"}},
	"verbose":         {{"true", "false", "true"}, {"false", "true", "false"}},
	"quiet":           {{"true", "false", "true"}, {"false", "true", "false"}},
	"include":         {{"by-flag", "by-file", "by-variable"}},
	"exclude":         {{"by-flag", "by-file", "by-variable"}},
	"exclude-from":    {{"by-flag", "by-file", "by-variable"}},
	"files-from":      {{"by-flag", "by-file", "by-variable"}},
	"null":            {{"true", "false", "true"}, {"false", "true", "false"}},
	"one-file-system": {{"true", "false", "true"}, {"false", "true", "false"}},
	"min-size":        {{"1K", "2K", "3K"}},
	"max-size":        {{"1K", "2K", "3K"}},
	"newer-than":      {{"1h", "2d", "2026-01-31"}},
	"older-than":      {{"1h", "2d", "2026-01-31T12:00:00Z"}},
	"links":           {{"copy", "follow", "skip"}},
	"path":            {{"auto", "dma", "fast"}},
	"checksum":        {{"true", "false", "true"}, {"false", "true", "false"}},
	"if-same":         {{"error", "skip", "error"}, {"skip", "error", "skip"}},
	"dry-run":         {{"true", "false", "true"}, {"false", "true", "false"}},
	"fail-fast":       {{"true", "false", "true"}, {"false", "true", "false"}},
	"max-entries":     {{"1", "2", "3"}},
	"events":          {{"all", "failures", "all"}, {"failures", "all", "failures"}},
}

func TestPrecedenceOfEveryKey(t *testing.T) {
	for _, opt := range mergedOptions() {
		for _, values := range samples[opt.Name] {
			for present := range 8 {
				t.Run(fmt.Sprintf("%s %q present %03b", opt.Name, values, present), func(t *testing.T) {
					checkPrecedence(t, opt, values, present)
				})
			}
		}
	}
}

// mergedOptions returns the table without the option that names the file to merge.
func mergedOptions() []option.Option {
	return slices.DeleteFunc((&copying.Settings{}).Table(), func(opt option.Option) bool { return opt.Name == "json" })
}

// checkPrecedence sets the values whose bits are set, flag first, and expects the first of them or the default.
func checkPrecedence(t *testing.T, opt option.Option, values [3]string, present int) {
	args, variables, want := []string{}, map[string]string{}, opt.Default
	if opt.Name != "file" {
		args = append(args, "-f", "x")
	}
	if opt.Name == "null" {
		args = append(args, "--files-from", "x")
	}
	if present&4 != 0 {
		variables[option.VariableName(opt.Name)], want = values[2], values[2]
	}
	if present&2 != 0 {
		inNewDir(t, "params.json", paramsWith(t, opt, values[1]))
		args, want = append(args, "-j", "params.json"), values[1]
	}
	if present&1 != 0 {
		args, want = append(args, "--"+opt.Name+"="+values[0]), values[0]
	}
	if opt.Name == "file" && present == 0 {
		mustRefuse(t, loadCopy(variables, args...),
			"--file is missing: name the file to send or to create with -f FILE")
		return
	}
	expected := defaults(func(s *copying.Settings) {
		if opt.Name == "null" {
			s.FilesFrom = "x"
		}
		if opt.Name == "quiet" && want == "true" {
			s.LogLevel, s.Driver.LogLevel = option.LevelError, option.LevelError
		}
	})
	if want != "" {
		bound, _ := option.ByName(expected.Table(), opt.Name)
		if err := bound.Assign(want); err != nil {
			t.Fatal(err)
		}
	}
	if got := mustLoad(t, variables, args...); !reflect.DeepEqual(got, expected) {
		t.Errorf("flags %q, variables %q:\n got %+v\nwant %+v", args, variables, got, expected)
	}
}

// paramsWith returns a parameter file with one value; a switch is a JSON boolean.
func paramsWith(t *testing.T, opt option.Option, value string) string {
	t.Helper()
	var member any = value
	if opt.IsSwitch() {
		member = value == "true"
	}
	text, err := json.Marshal(map[string]any{opt.FileGroup(): map[string]any{opt.Name: member}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSamplesCoverTheTable(t *testing.T) {
	var names []string
	for _, opt := range mergedOptions() {
		names = append(names, opt.Name)
	}
	slices.Sort(names)
	if sampled := slices.Sorted(maps.Keys(samples)); !slices.Equal(sampled, names) {
		t.Errorf("samples for %q, options %q", sampled, names)
	}
}

func TestVariableNames(t *testing.T) {
	var got []string
	for _, opt := range (&copying.Settings{}).Table() {
		for _, name := range opt.Names() {
			got = append(got, option.VariableName(name))
		}
	}
	want := strings.Fields(`DMA_COPY_LOG_LEVEL DMA_COPY_LOG_FORMAT DMA_COPY_SDK_LOG_LEVEL DMA_COPY_JSON
		DMA_COPY_PCI_ADDR DMA_COPY_DEV_PCI
		DMA_COPY_REP_PCI DMA_COPY_FILE DMA_COPY_DRIVER DMA_COPY_REQUIRE_HW DMA_COPY_DOCA_LIBDIR
		DMA_COPY_ROLE DMA_COPY_CHUNK DMA_COPY_DEPTH DMA_COPY_LANES DMA_COPY_PATH
		DMA_COPY_NUMA DMA_COPY_CORES DMA_COPY_WAIT
		DMA_COPY_TIMEOUT DMA_COPY_MAX_DURATION DMA_COPY_MAX_BYTES DMA_COPY_MAX_HOLES DMA_COPY_IDLE_TIMEOUT
		DMA_COPY_OVERWRITE DMA_COPY_IGNORE_EXISTING DMA_COPY_BACKUP DMA_COPY_PROTOCOL DMA_COPY_OUTPUT DMA_COPY_PROGRESS
		DMA_COPY_EVENTS DMA_COPY_VERBOSE DMA_COPY_QUIET DMA_COPY_DIGEST DMA_COPY_EXPECT DMA_COPY_WITH DMA_COPY_VERIFY
		DMA_COPY_ALLOW_CHANGING
		DMA_COPY_DURABILITY DMA_COPY_SPARSE DMA_COPY_PRESERVE DMA_COPY_NO_RESUME
		DMA_COPY_INCLUDE DMA_COPY_EXCLUDE DMA_COPY_EXCLUDE_FROM DMA_COPY_FILES_FROM DMA_COPY_NULL DMA_COPY_LINKS
		DMA_COPY_ONE_FILE_SYSTEM DMA_COPY_MIN_SIZE DMA_COPY_MAX_SIZE DMA_COPY_NEWER_THAN DMA_COPY_OLDER_THAN
		DMA_COPY_CHECKSUM DMA_COPY_IF_SAME DMA_COPY_DRY_RUN DMA_COPY_FAIL_FAST DMA_COPY_MAX_ENTRIES DMA_COPY_BWLIMIT
		DMA_COPY_CPUPROFILE`)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParameterFileNamedByVariable(t *testing.T) {
	inNewDir(t, "params.json", `{"doca_program_flags": {"file": "x"}}`)
	writeFile(t, "other.json", `{"doca_program_flags": {"file": "y"}}`)
	variables := map[string]string{"DMA_COPY_JSON": "params.json"}
	if got := mustLoad(t, variables).File; got != "x" {
		t.Errorf("file %q, want that of DMA_COPY_JSON's file", got)
	}
	if got := mustLoad(t, variables, "-j", "other.json").File; got != "y" {
		t.Errorf("file %q, want that of --json's file", got)
	}
}

func TestSiteFile(t *testing.T) {
	inNewDir(t, "site.json", `{"doca_program_flags": {"wait": "1s", "idle-timeout": "2s", "timeout": "3s"}}`)
	writeFile(t, "params.json", `{"doca_program_flags": {"timeout": "5s"}}`)
	variables := map[string]string{"DMA_COPY_CONFIG": "site.json", "DMA_COPY_IDLE_TIMEOUT": "4s",
		"DMA_COPY_JSON": "params.json"}
	got := mustLoad(t, variables, "-f", "x")
	if got.Wait != time.Second || got.IdleTimeout != 4*time.Second || got.Timeout != 5*time.Second {
		t.Errorf("wait %s, idle timeout %s, timeout %s", got.Wait, got.IdleTimeout, got.Timeout)
	}
	if got := mustLoad(t, variables, "-f", "x", "--wait", "6s").Wait; got != 6*time.Second {
		t.Errorf("wait %s in spite of a flag", got)
	}
}

// A site file that is named must exist and be valid.
func TestRefusedSiteFile(t *testing.T) {
	inNewDir(t, "site.json", `{"doca_program_flags": {"wiat": "1s"}}`)
	mustRefuse(t, loadCopy(map[string]string{"DMA_COPY_CONFIG": "no.json"}, "-f", "x"),
		`DMA_COPY_CONFIG "no.json": no such file or directory; name a readable parameter file`)
	mustRefuse(t, loadCopy(map[string]string{"DMA_COPY_CONFIG": "site.json"}, "-f", "x"),
		`site.json:1: unknown key "wiat" in doca_program_flags: did you mean "wait"?`)
}

func TestAliasInEveryLayer(t *testing.T) {
	inNewDir(t, "params.json", `{"doca_program_flags": {"dev-pci": "by-file"}}`)
	variables := map[string]string{"DMA_COPY_DEV_PCI": "by-variable"}
	if got := mustLoad(t, variables, "-f", "x").Device; got != "by-variable" {
		t.Errorf("device %q", got)
	}
	if got := mustLoad(t, variables, "-f", "x", "-j", "params.json").Device; got != "by-file" {
		t.Errorf("device %q", got)
	}
	if got := mustLoad(t, variables, "-f", "x", "-j", "params.json", "-p", "by-flag").Device; got != "by-flag" {
		t.Errorf("device %q", got)
	}
}

// The patterns of the origin of highest precedence replace those of all others: they are one list, whose order matters.
func TestPatternsOfSeveralOrigins(t *testing.T) {
	inNewDir(t, "params.json", `{"doca_program_flags": {"include": "by-file", "exclude": ["by-file"]}}`)
	variables := map[string]string{
		"DMA_COPY_EXCLUDE": "first\n\nsecond\n", "DMA_COPY_INCLUDE": "by-variable", "DMA_COPY_EXCLUDE_FROM": "list",
	}
	for _, tc := range []struct {
		line string
		want []copying.FilterRule
	}{
		{"-f x", []copying.FilterRule{{Kind: copying.FilterInclude, Text: "by-variable"},
			{Kind: copying.FilterExclude, Text: "first"},
			{Kind: copying.FilterExclude, Text: "second"},
			{Kind: copying.FilterExcludeFrom, Text: "list"}}},
		{"-f x -j params.json", []copying.FilterRule{{Kind: copying.FilterInclude, Text: "by-file"},
			{Kind: copying.FilterExclude, Text: "by-file"}}},
		{"-f x -j params.json --exclude by-flag", []copying.FilterRule{{Kind: copying.FilterExclude, Text: "by-flag"}}},
	} {
		if got := mustLoad(t, variables, words(tc.line)...).Filters; !slices.Equal(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.line, got, tc.want)
		}
	}
	mustRefuse(t, loadCopy(map[string]string{"DMA_COPY_EXCLUDE": "a\n" + strings.Repeat("b", 4096+1)},
		"-f", "x"),
		`DMA_COPY_EXCLUDE "`+strings.Repeat("b", 39)+`...`+strings.Repeat("b", 38)+
			`": longer than 4096 bytes; give a pattern such as *.tmp or build/`)
}

// An empty array in a parameter file clears the list of the machine's own file.
func TestNoPatternsInsteadOfDefaults(t *testing.T) {
	inNewDir(t, "site.json", `{"doca_program_flags": {"exclude": ["*.tmp"]}}`)
	writeFile(t, "params.json", `{"doca_program_flags": {"include": []}}`)
	variables := map[string]string{"DMA_COPY_CONFIG": "site.json"}
	if got := mustLoad(t, variables, "-f", "x").Filters; !slices.Equal(got,
		[]copying.FilterRule{{Kind: copying.FilterExclude, Text: "*.tmp"}}) {
		t.Errorf("%+v from the machine's file", got)
	}
	if got := mustLoad(t, variables, "-f", "x", "-j", "params.json").Filters; got != nil {
		t.Errorf("%+v in spite of an empty list", got)
	}
}

func TestEmptyVariableCountsAsNotSet(t *testing.T) {
	variables := map[string]string{}
	for _, opt := range (&copying.Settings{}).Table() {
		for _, name := range opt.Names() {
			variables[option.VariableName(name)] = ""
		}
	}
	if got := mustLoad(t, variables, "-f", "x"); !reflect.DeepEqual(got, defaults()) {
		t.Errorf("got %+v", got)
	}
}

func TestOverriddenVariableIsNotChecked(t *testing.T) {
	variables := map[string]string{"DMA_COPY_WAIT": "endless"}
	if got := mustLoad(t, variables, "-f", "x", "--wait", "30s"); !reflect.DeepEqual(got, defaults()) {
		t.Errorf("got %+v", got)
	}
}

func TestRefusedVariables(t *testing.T) {
	cases := []struct {
		name      string
		variables map[string]string
		sentence  string
	}{
		{"duration", map[string]string{"DMA_COPY_WAIT": "0"},
			`DMA_COPY_WAIT "0": the duration must be longer than zero; give one such as 30s`},
		{"switch", map[string]string{"DMA_COPY_QUIET": "sometimes"},
			`DMA_COPY_QUIET "sometimes": not a boolean; give true or false`},
		{"choice", map[string]string{"DMA_COPY_DRIVER": "Soft"},
			`DMA_COPY_DRIVER "Soft": not one of the choices; give auto, doca, soft or ucx`},
		{"device under its old name", map[string]string{"DMA_COPY_DEV_PCI": "a b"}, `DMA_COPY_DEV_PCI "a b": ` +
			"not a device; give a PCI address such as b1:00.1, or an IB or net device name"},
		{"two devices", map[string]string{"DMA_COPY_DEV_PCI": "a", "DMA_COPY_PCI_ADDR": "b"},
			`DMA_COPY_PCI_ADDR "b" and DMA_COPY_DEV_PCI "a" differ: both name the same thing, so give one of them`},
		{"parameter file", map[string]string{"DMA_COPY_JSON": "no.json"},
			`DMA_COPY_JSON "no.json": no such file or directory; name a readable parameter file`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			mustRefuse(t, loadCopy(tc.variables, "-f", "x"), tc.sentence)
		})
	}
}
