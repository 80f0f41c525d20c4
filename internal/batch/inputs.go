package batch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// extensions are the names that the proxy takes for images; what a file is, its
// bytes decide.
var extensions = []string{".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif"}

// Input is one file to convert.
type Input struct {
	// Path leads to the file.
	Path string
	// Name is the path that it keeps below the folder of results.
	Name string
	// shared says that another input differs from this one only in its extension.
	shared bool
	// err says why a folder could not be read.
	err error
}

// Target is the path of the variant below the folder of results: photo.jpg
// becomes photo.webp, or photo.jpg.webp where there is a photo.png as well.
func (i Input) Target(extension string) string {
	if i.shared {
		return i.Name + extension
	}
	return stem(i.Name) + extension
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// Inputs lists the files that the paths name: files as they are, whatever their
// name, and of folders all files below that bear an image's name. Links to folders
// are followed where they are named, not where they are found. A path that leads
// nowhere is listed too, so that its report says so and the others are not lost.
// LeftOut is the number of the other files in the folders.
func Inputs(paths []string) (inputs []Input, leftOut int) {
	var others []string
	for _, path := range paths {
		found, rest := find(path)
		inputs, others = append(inputs, found...), append(others, rest...)
	}
	seen := map[string]bool{}
	inputs = slices.DeleteFunc(inputs, func(in Input) bool {
		key := filepath.Clean(in.Path)
		known := seen[key]
		seen[key] = true
		return known
	})
	for _, path := range others {
		if key := filepath.Clean(path); !seen[key] {
			seen[key] = true
			leftOut++
		}
	}
	stems := map[string]int{}
	for _, in := range inputs {
		stems[strings.ToLower(stem(in.Name))]++
	}
	for i := range inputs {
		inputs[i].shared = stems[strings.ToLower(stem(inputs[i].Name))] > 1
	}
	return inputs, leftOut
}

// Clash says which two inputs would be written to one file, nil if none would.
func Clash(inputs []Input) error {
	taken := map[string]string{}
	for _, in := range inputs {
		target := in.Target("")
		if other, found := taken[target]; found {
			return fmt.Errorf("%s and %s would both be written to %s: convert their folders one by one, with an output folder each",
				other, in.Path, target)
		}
		taken[target] = in.Path
	}
	return nil
}

// find lists the inputs at a path, and the paths of what is none.
func find(path string) (inputs []Input, others []string) {
	single := []Input{{Path: path, Name: filepath.Base(path)}}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return single, nil
	}
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return single, nil
	}
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(p, root), string(filepath.Separator))
		in := Input{Path: filepath.Join(path, name), Name: name}
		switch {
		case err != nil:
			// A folder that cannot be read is reported like a file that cannot.
			in.err = withoutPath(err)
			inputs = append(inputs, in)
			return fs.SkipDir
		case d.IsDir():
		case !d.Type().IsRegular() && (d.Type()&fs.ModeSymlink == 0 || !isFile(p)):
			// A pipe, a device, or a link to a folder or to nothing.
		case slices.Contains(extensions, strings.ToLower(filepath.Ext(p))):
			inputs = append(inputs, in)
		default:
			others = append(others, in.Path)
		}
		return nil
	}) // what cannot be read is among the inputs
	return inputs, others
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
