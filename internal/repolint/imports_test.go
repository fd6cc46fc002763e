package repolint

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	modulePath = "github.com/dma-copy/dma-copy"

	programPackage   = "cmd/dma-copy"
	pagesPackage     = "internal/pages"
	negotiatePackage = "internal/negotiate"
	docaPackage      = "internal/doca"
	docaInternal     = docaPackage + "/internal"
	softdocaFolder   = "softdoca"
	ucxPackage       = "internal/ucx"

	cliPackage       = "internal/cli"
	daemonPackage    = "internal/daemon"
	rootPackage      = cliPackage + "/root"
	optionPackage    = cliPackage + "/option"
	placementPackage = "internal/placement"
	viper            = "github.com/spf13/viper"
)

// A layer is a group of packages, each with everything below its folder that no other layer has. A package imports
// packages of later layers, and of its own unless they are to be independent of each other.
type layer struct {
	packages    []string
	independent bool
}

// The layers from the top to the bottom. A package that does not exist yet may already have its place.
var layers = []layer{
	{packages: []string{"internal/repolint"}},
	{packages: []string{programPackage, pagesPackage}, independent: true},
	{packages: []string{cliPackage + "/program"}},
	{
		packages: []string{ // the commands
			cliPackage + "/bench", cliPackage + "/bundle", cliPackage + "/completion", cliPackage + "/config",
			cliPackage + "/copy", cliPackage + "/devices", cliPackage + "/doctor", cliPackage + "/keys",
			cliPackage + "/local", cliPackage + "/ls", cliPackage + "/mkdir",
			cliPackage + "/peers", cliPackage + "/ping",
			cliPackage + "/rm", cliPackage + "/serve", cliPackage + "/status", cliPackage + "/transfer",
			cliPackage + "/verify", cliPackage + "/version",
		},
		independent: true,
	},
	{packages: []string{cliPackage}},
	{packages: []string{daemonPackage}},
	{packages: []string{"client"}},
	{packages: []string{"internal/operations"}},
	{packages: []string{"internal/connect"}},
	{packages: []string{"internal/report"}},
	{
		packages:    []string{"internal/fileio", "internal/inventory", "internal/sshstart", placementPackage},
		independent: true,
	},
	{packages: []string{"internal/service", "internal/probe"}, independent: true},
	{packages: []string{"internal/dmaxfer", "internal/ping"}, independent: true},
	{packages: []string{"internal/dmaxfer/native", "internal/dmaxfer/reference"}, independent: true},
	{packages: []string{"internal/dmaxfer/native/send", "internal/dmaxfer/native/receive"}, independent: true},
	{packages: []string{"internal/dmaxfer/native/role"}},
	{packages: []string{"internal/network"}},
	{packages: []string{"internal/dmaxfer/window"}},
	{packages: []string{"internal/secure"}},
	{packages: []string{"internal/identity"}},
	{packages: []string{"internal/share"}},
	{packages: []string{
		"internal/dmaxfer/job", "internal/dmaxfer/pump", "internal/dmaxfer/tree", "internal/dmaxfer/disk",
		"internal/dmaxfer/digest", "internal/dmaxfer/inode", "internal/dmaxfer/target",
	}},
	{packages: []string{negotiatePackage}},
	{packages: []string{negotiatePackage + "/service"}},
	{packages: []string{negotiatePackage + "/native"}},
	{packages: []string{negotiatePackage + "/reference"}},
	{packages: []string{"internal/release"}},
	{packages: []string{negotiatePackage + "/wire", "internal/comch"}, independent: true},
	{packages: []string{docaPackage, ucxPackage}, independent: true},
	{packages: []string{docaInternal + "/cabi"}},
	{packages: []string{softdocaFolder + "/device"}},
	{packages: []string{softdocaFolder + "/abi"}},
	{packages: []string{"internal/exit"}},
	{
		packages: []string{
			"internal/background", "internal/lines", "internal/phrase", "internal/quantity", "internal/quote",
			"internal/tcpport",
		},
		independent: true,
	},
}

// An importRule checks one file and returns how it breaks the rule, as the rest of a sentence that starts with the
// file's name.
type importRule struct {
	name       string
	violations func(sourceFile) []string
}

var importRules = []importRule{
	{"every package has a layer", everyPackageHasALayer},
	{"imports go down the layers", importsGoDown},
	{"children do not import their parent", childrenDoNotImportTheirParent},
	{"test support only in tests", testSupportOnlyInTests},
	{"only doca imports its internal packages and softdoca", onlyDocaImportsTheDevice},
	{"negotiate is pure", negotiateIsPure},
	{"cgo only in cabi, softdoca and ucx", cgoOnlyInBindings},
	{"viper only in option", viperOnlyInOption},
	{"cobra only in root", cobraOnlyInRoot},
	{"no global logger", noGlobalLogger},
	{"no other log package", noOtherLogPackage},
	{"only main exits", onlyMainExits},
	{"process-wide state only in placement", processStateOnlyInPlacement},
}

func TestImportRules(t *testing.T) {
	files := moduleFiles(t)
	for _, rule := range importRules {
		t.Run(rule.name, func(t *testing.T) {
			for _, violation := range check(rule, files) {
				t.Error(violation)
			}
		})
	}
	t.Run("viper in one file", func(t *testing.T) {
		if users := importers(files, viper); len(users) != 1 {
			t.Errorf("viper is imported by %q, want exactly one file", users)
		}
	})
}

func check(rule importRule, files []sourceFile) (violations []string) {
	for _, file := range files {
		for _, violation := range rule.violations(file) {
			violations = append(violations, file.path+" "+violation)
		}
	}
	return violations
}

func everyPackageHasALayer(file sourceFile) []string {
	if layerOf(file.folder()) >= 0 {
		return nil
	}
	return []string{"is in no known package: move it, or add its package to the layers in " +
		"internal/repolint/imports_test.go"}
}

func importsGoDown(file sourceFile) (violations []string) {
	own := layerOf(file.folder())
	for _, imported := range file.importedFolders() {
		theirs := layerOf(imported)
		switch {
		case theirs < own:
			violations = append(violations, fmt.Sprintf("imports %s, which is in a layer above it", imported))
		case theirs == own && own >= 0 && layers[own].independent && memberOf(imported) != memberOf(file.folder()):
			violations = append(violations, fmt.Sprintf("imports %s, of which it must be independent", imported))
		}
	}
	return violations
}

// A package of test support, such as comch/comchtest, is about its parent and may import it.
func childrenDoNotImportTheirParent(file sourceFile) (violations []string) {
	if isTestSupport(file.folder()) {
		return nil
	}
	for _, imported := range file.importedFolders() {
		if imported != file.folder() && within(file.folder(), imported) {
			violations = append(violations, fmt.Sprintf("imports %s, its parent", imported))
		}
	}
	return violations
}

func testSupportOnlyInTests(file sourceFile) (violations []string) {
	if file.test || isTestSupport(file.folder()) {
		return nil
	}
	for _, imported := range file.importedFolders() {
		if isTestSupport(imported) {
			violations = append(violations, fmt.Sprintf("imports %s, which is for tests", imported))
		}
	}
	return violations
}

func onlyDocaImportsTheDevice(file sourceFile) []string {
	if within(file.path, docaPackage) || within(file.path, softdocaFolder) {
		return nil
	}
	return forbid(file, "which only "+docaPackage+" may", modulePath+"/"+docaInternal, modulePath+"/"+softdocaFolder)
}

// The tests of negotiate may read their vectors from disk, and its packages import each other.
func negotiateIsPure(file sourceFile) []string {
	if file.test || isTestSupport(file.folder()) || !within(file.path, negotiatePackage) {
		return nil
	}
	isPure := func(imported string) bool {
		return within(imported, modulePath+"/"+negotiatePackage) || imported == "net/netip" // which has addresses
	}
	file.imports = slices.DeleteFunc(slices.Clone(file.imports), isPure)
	violations := forbid(file, "but "+negotiatePackage+" imports nothing else of ours, does no I/O and reads no clock",
		modulePath, "os", "net", "time", "sync", "syscall", "golang.org/x/sys")
	if file.startsGoroutine {
		violations = append(violations, "starts a goroutine, which "+negotiatePackage+" must not")
	}
	return violations
}

func cgoOnlyInBindings(file sourceFile) []string {
	bindings := []string{docaInternal + "/cabi", softdocaFolder, ucxPackage}
	if slices.ContainsFunc(bindings, func(folder string) bool { return within(file.path, folder) }) {
		return nil
	}
	return forbid(file, "which only "+strings.Join(bindings, ", ")+" may", "C")
}

func viperOnlyInOption(file sourceFile) []string {
	if within(file.path, optionPackage) {
		return nil
	}
	return forbid(file, "which only "+optionPackage+" may", viper)
}

func cobraOnlyInRoot(file sourceFile) []string {
	if file.folder() == rootPackage {
		return nil
	}
	violations := forbid(file, "which only "+rootPackage+" may", "github.com/spf13/cobra")
	if !within(file.path, cliPackage) && file.folder() != programPackage {
		violations = append(violations, forbid(file, "which only "+cliPackage+" may", "github.com/spf13/pflag")...)
	}
	return violations
}

func noGlobalLogger(file sourceFile) []string {
	return forbid(file, "zerolog's global logger: take a zerolog.Logger by value", "github.com/rs/zerolog/log")
}

// libraryLogFile directs what libraries log by Go's package to zerolog.
const libraryLogFile = daemonPackage + "/metrics/log.go"

func noOtherLogPackage(file sourceFile) []string {
	if file.test || file.path == libraryLogFile {
		return nil
	}
	return forbid(file, "but this program logs with zerolog", "log")
}

func onlyMainExits(file sourceFile) []string {
	mains := []string{programPackage + "/main.go", pagesPackage + "/main.go"}
	if file.test || slices.Contains(mains, file.path) || !slices.Contains(file.uses, "os.Exit") {
		return nil
	}
	return []string{"calls os.Exit, which only " + strings.Join(mains, " and ") + " may: return an error"}
}

// The functions and numbers of system calls that change the CPUs, the scheduling or the memory of the whole process.
// C functions have the prefix "C.".
var processState = []string{
	"runtime.GOMAXPROCS", "runtime.SetDefaultGOMAXPROCS",
	"runtime/debug.SetGCPercent", "runtime/debug.SetMaxThreads", "runtime/debug.SetMemoryLimit",
	"golang.org/x/sys/unix.SchedSetaffinity", "golang.org/x/sys/unix.SchedSetaffinityDynamic",
	"golang.org/x/sys/unix.SYS_SCHED_SETAFFINITY", "golang.org/x/sys/unix.SYS_SET_MEMPOLICY",
	"C.sched_setaffinity", "C.pthread_setaffinity_np", "C.set_mempolicy",
}

func processStateOnlyInPlacement(file sourceFile) (violations []string) {
	if file.test || isTestSupport(file.folder()) || within(file.path, placementPackage) {
		return nil
	}
	for _, used := range file.uses {
		if slices.Contains(processState, used) {
			violations = append(violations, fmt.Sprintf("uses %s, which only %s may", used, placementPackage))
		}
	}
	return violations
}

// importers returns the files that import the package or one below it.
func importers(files []sourceFile, imported string) (paths []string) {
	for _, file := range files {
		if slices.ContainsFunc(file.imports, func(name string) bool { return within(name, imported) }) {
			paths = append(paths, file.path)
		}
	}
	return paths
}

// forbid returns a violation for each import of the file that is one of the packages or lies below one.
func forbid(file sourceFile, because string, packages ...string) (violations []string) {
	for _, imported := range file.imports {
		if slices.ContainsFunc(packages, func(p string) bool { return within(imported, p) }) {
			violations = append(violations, fmt.Sprintf("imports %q, %s", imported, because))
		}
	}
	return violations
}

// layerOf returns the index of the layer that a folder belongs to, or -1.
func layerOf(folder string) int {
	member := memberOf(folder)
	return slices.IndexFunc(layers, func(l layer) bool { return slices.Contains(l.packages, member) })
}

// memberOf returns the innermost package of the layers that is the folder or contains it, or "".
func memberOf(folder string) (innermost string) {
	for _, layer := range layers {
		for _, member := range layer.packages {
			if within(folder, member) && len(member) > len(innermost) {
				innermost = member
			}
		}
	}
	return innermost
}

// isTestSupport reports whether a folder has a package that only tests import, such as internal/comch/comchtest.
func isTestSupport(folder string) bool {
	return within(folder, programPackage+"/e2e") || path.Base(folder) == path.Base(path.Dir(folder))+"test"
}

func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}
