package repolint

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// The law of arrows: who may import whom, and what a room must not do. A room imports only rooms to its right.
var rooms = []string{
	cmdRoom, benchRoom, dmaxferRoom, negotiateRoom, comchRoom, docaRoom, cabiRoom, softdevRoom, abiRoom, quoteRoom,
	"internal/repolint",
}

const (
	cmdRoom       = "cmd"
	benchRoom     = "internal/bench"
	dmaxferRoom   = "internal/dmaxfer"
	negotiateRoom = "internal/negotiate"
	comchRoom     = "internal/comch"
	docaRoom      = "internal/doca"
	insideDoca    = "internal/doca/internal"
	cabiRoom      = insideDoca + "/cabi"
	softdevRoom   = insideDoca + "/softdev"
	abiRoom       = insideDoca + "/abi"
	quoteRoom     = "internal/quote"

	programFolder = "cmd/dma-copy"
	mainFile      = "cmd/dma-copy/main.go"
	viper         = "github.com/spf13/viper"
)

// An arrowRule judges one file and returns what it does against the law, as the rest of a sentence that starts with
// the file's name.
type arrowRule struct {
	name     string
	breaches func(goFile) []string
}

var arrowRules = []arrowRule{
	{"every file has a room", everyFileHasARoom},
	{"arrows point right", arrowsPointRight},
	{"only doca sees its inside", onlyDocaSeesItsInside},
	{"negotiate is pure", negotiateIsPure},
	{"cgo only inside doca", cgoOnlyInsideDoca},
	{"viper only in the program", viperOnlyInProgram},
	{"cobra only in cmd", cobraOnlyInCmd},
	{"no global logger", noGlobalLogger},
	{"no other log package", noOtherLogPackage},
	{"only main exits", onlyMainExits},
}

func TestLawOfArrows(t *testing.T) {
	files := moduleFiles(t)
	for _, rule := range arrowRules {
		t.Run(rule.name, func(t *testing.T) {
			for _, breach := range judge(rule, files) {
				t.Error(breach)
			}
		})
	}
	t.Run("viper in one file", func(t *testing.T) {
		if users := viperUsers(files); len(users) != 1 {
			t.Errorf("viper must be imported by exactly one file, but is by %d: %s", len(users), strings.Join(users, ", "))
		}
	})
}

func judge(rule arrowRule, files []goFile) (sentences []string) {
	for _, file := range files {
		for _, breach := range rule.breaches(file) {
			sentences = append(sentences, file.path+" "+breach)
		}
	}
	return sentences
}

func everyFileHasARoom(file goFile) []string {
	return breachIf(roomOf(file.folder()) < 0,
		"belongs to no room: move it into one of %s, or add its room to the law", strings.Join(rooms, ", "))
}

func arrowsPointRight(file goFile) (breaches []string) {
	own := roomOf(file.folder())
	for _, folder := range file.importedFolders() {
		breaches = append(breaches, breachIf(roomOf(folder) < own,
			"imports %s, but %s imports only rooms to its right", folder, rooms[max(own, 0)])...)
	}
	return breaches
}

func onlyDocaSeesItsInside(file goFile) []string {
	if within(file.path, docaRoom) {
		return nil
	}
	return forbid(file, "which only "+docaRoom+" may", modulePath+"/"+insideDoca)
}

// Protocol code is bytes in, bytes out. Its tests may read their vectors from disk.
func negotiateIsPure(file goFile) []string {
	if file.test || !within(file.path, negotiateRoom) {
		return nil
	}
	return append(forbid(file, "but "+negotiateRoom+" does no I/O, reads no clock and shares nothing",
		"os", "net", "time", "sync", "syscall", "golang.org/x/sys"),
		breachIf(file.startsGoroutine, "starts a goroutine, which %s never does", negotiateRoom)...)
}

func cgoOnlyInsideDoca(file goFile) []string {
	if within(file.path, insideDoca) {
		return nil
	}
	return forbid(file, "which only packages below "+insideDoca+" may", "C")
}

func viperOnlyInProgram(file goFile) []string {
	if within(file.path, programFolder) {
		return nil
	}
	return forbid(file, "which only "+programFolder+" may", viper)
}

func cobraOnlyInCmd(file goFile) []string {
	if within(file.path, cmdRoom) {
		return nil
	}
	return forbid(file, "which only "+cmdRoom+" may", "github.com/spf13/cobra", "github.com/spf13/pflag")
}

func noGlobalLogger(file goFile) []string {
	return forbid(file, "zerolog's global logger: take a zerolog.Logger by value", "github.com/rs/zerolog/log")
}

func noOtherLogPackage(file goFile) []string {
	if file.test {
		return nil
	}
	return forbid(file, "but this program logs through zerolog", "log")
}

func onlyMainExits(file goFile) []string {
	return breachIf(file.exits && !file.test && file.path != mainFile,
		"calls os.Exit, which only %s may: return an error", mainFile)
}

// The configuration leaves viper as a plain struct, so one file is all that needs it.
func viperUsers(files []goFile) (users []string) {
	for _, file := range files {
		if slices.ContainsFunc(file.imports, func(imported string) bool { return within(imported, viper) }) {
			users = append(users, file.path)
		}
	}
	return users
}

func breachIf(broken bool, format string, args ...any) []string {
	if !broken {
		return nil
	}
	return []string{fmt.Sprintf(format, args...)}
}

// forbid finds the file's imports that are one of the packages or lie below one.
func forbid(file goFile, because string, packages ...string) (breaches []string) {
	for _, imported := range file.imports {
		if slices.ContainsFunc(packages, func(p string) bool { return within(imported, p) }) {
			breaches = append(breaches, fmt.Sprintf("imports %q, %s", imported, because))
		}
	}
	return breaches
}

// roomOf returns the place, from the left, of the innermost room that a folder lies in, or -1.
func roomOf(folder string) int {
	for i, room := range slices.Backward(rooms) {
		if within(folder, room) {
			return i
		}
	}
	return -1
}

func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

func (f goFile) folder() string { return path.Dir(f.path) }

// importedFolders returns the folders of this module that the file imports.
func (f goFile) importedFolders() (folders []string) {
	for _, imported := range f.imports {
		if folder, ours := strings.CutPrefix(imported, modulePath+"/"); ours {
			folders = append(folders, folder)
		}
	}
	return folders
}
