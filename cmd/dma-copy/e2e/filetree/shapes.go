package filetree

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path"
	"path/filepath"
	"strings"
)

// Shape is a kind of tree.
type Shape string

// The shapes.
const (
	Small   Shape = "small"    // files of 4 KiB, 100 in each directory
	Source  Shape = "source"   // like a source tree: files of 1 KiB to 1 MiB, most of them small, and some symlinks
	Deep    Shape = "deep"     // a chain of directories, at most 1,000, with three files in each
	HugeDir Shape = "huge-dir" // one directory with empty and very small files
)

// Shapes are all shapes.
var Shapes = []Shape{Small, Source, Deep, HugeDir}

// Files returns the number of files that New uses if it is given none.
func (s Shape) Files() int {
	switch s {
	case Small:
		return 10_000
	case Source:
		return 5_000
	case Deep:
		return 900
	default:
		return 100_000
	}
}

// Tree is the plan of a tree: everything but the bytes of its files. It is the same each time for a shape and a number
// of files.
type Tree struct {
	Files       int // regular files
	Directories int // without the root
	Symlinks    int
	Bytes       int64 // of all regular files

	nodes  []node // parents before their children
	random *rand.Rand
}

// node is an entry of a planned tree.
type node struct {
	path string // below the root
	mode fs.FileMode
	size int64
	link string
}

const (
	fileMode       fs.FileMode = 0o644
	executableMode fs.FileMode = 0o755
	directoryMode              = fs.ModeDir | 0o755
	symlinkMode                = fs.ModeSymlink | 0o777
)

// New plans a tree with that many regular files, or with the shape's own number if files is 0.
func New(s Shape, files int) *Tree {
	if files == 0 {
		files = s.Files()
	}
	t := &Tree{random: rand.New(rand.NewPCG(1, 2))}
	switch s {
	case Small:
		t.planSmall(files)
	case Source:
		t.planSource(files)
	case Deep:
		t.planDeep(files)
	case HugeDir:
		t.planHugeDirectory(files)
	default:
		panic("filetree: unknown shape " + string(s))
	}
	return t
}

func (t *Tree) addDirectory(path string) {
	t.nodes = append(t.nodes, node{path: path, mode: directoryMode})
	t.Directories++
}

func (t *Tree) addFile(path string, mode fs.FileMode, size int64) {
	t.nodes = append(t.nodes, node{path: path, mode: mode, size: size})
	t.Files++
	t.Bytes += size
}

func (t *Tree) addSymlink(path, text string) {
	t.nodes = append(t.nodes, node{path: path, mode: symlinkMode, link: text})
	t.Symlinks++
}

func (t *Tree) planSmall(files int) {
	directories := min(max(files/100, 1), 100)
	for i := range directories {
		t.addDirectory(fmt.Sprintf("d%02d", i))
	}
	for i := range files {
		t.addFile(fmt.Sprintf("d%02d/f%06d", i%directories, i), fileMode, 4096)
	}
}

// planDeep uses short names: a path of 1,000 levels must not exceed the limit of the system. By default there are
// fewer, because the time of tools that use whole paths grows with the square of the depth.
func (t *Tree) planDeep(files int) {
	levels := min(max(files/3, 1), 1000)
	for i := range levels {
		t.addDirectory(chain(i + 1))
	}
	for i := range files {
		t.addFile(chain(i%levels+1)+fmt.Sprintf("/%d", i/levels), fileMode, 1024+t.random.Int64N(7*1024))
	}
}

// chain returns the path of the directory at a depth of planDeep's chain.
func chain(depth int) string { return strings.Repeat("/d", depth)[1:] }

func (t *Tree) planHugeDirectory(files int) {
	t.addDirectory("d")
	for i := range files {
		size := int64(0)
		if i%4 != 3 {
			size = 1 + t.random.Int64N(256)
		}
		t.addFile(fmt.Sprintf("d/f%07d", i), fileMode, size)
	}
}

// The distribution of file sizes in source trees is close to log-normal: half of the files are below the median, and
// few large ones have most of the bytes.
const (
	minSourceSize    = 1 << 10
	medianSourceSize = 5 << 10
	maxSourceSize    = 1 << 20
	sourceSizeSigma  = 1.25 // of the natural logarithm
)

const (
	filesPerDirectory = 10
	maxSourceDepth    = 9
)

var sourceNames = []string{"client", "codec", "config", "index", "main", "options", "reader", "server", "types", "util"}

// planSource grows a random tree of directories, in which the early ones have more files and subdirectories than the
// late ones, some of which have none.
func (t *Tree) planSource(files int) {
	directories := []string{""}
	for i := range files/filesPerDirectory + 1 {
		parent := directories[t.skewed(len(directories))]
		if strings.Count(parent, "/") >= maxSourceDepth {
			parent = ""
		}
		directory := path.Join(parent, fmt.Sprintf("%s%d", sourceNames[i%len(sourceNames)], i))
		directories = append(directories, directory)
		t.addDirectory(directory)
	}
	for i := range files {
		t.addSourceFile(directories[t.skewed(len(directories))], i)
	}
	t.addSourceSymlinks(files/100 + 1)
}

// skewed returns a random index below count; lower ones are more likely.
func (t *Tree) skewed(count int) int { return t.random.IntN(t.random.IntN(count) + 1) }

func (t *Tree) addSourceFile(directory string, number int) {
	name := fmt.Sprintf("%s_%d.go", sourceNames[t.random.IntN(len(sourceNames))], number)
	mode := fileMode
	if number%40 == 0 {
		name, mode = fmt.Sprintf("run-%d.sh", number), executableMode
	}
	size := int64(medianSourceSize * math.Exp(sourceSizeSigma*t.random.NormFloat64()))
	t.addFile(path.Join(directory, name), mode, min(max(size, minSourceSize), maxSourceSize))
}

// addSourceSymlinks adds symlinks to random files, and one in eight that is dangling.
func (t *Tree) addSourceSymlinks(count int) {
	files := t.nodes[t.Directories:]
	for i := range count {
		directory := path.Dir(files[t.random.IntN(len(files))].path)
		text := fmt.Sprintf("absent-%d", i)
		if i%8 != 7 {
			text = relativePath(directory, files[t.random.IntN(t.Files)].path)
		}
		t.addSymlink(path.Join(directory, fmt.Sprintf("link-%d", i)), text)
	}
}

// relativePath returns the path to a file from a directory of the same tree.
func relativePath(directory, file string) string {
	text, err := filepath.Rel(directory, file)
	if err != nil {
		panic(err) // both are relative to the same root
	}
	return text
}
