package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// folderVariable marks the children of a demonstration, in their environment, with
// its folder. Grandchildren that inherit the environment bear it too. A mark needs
// no list of ids, which would lack a child that was started in the last moment.
const folderVariable = "DEMONSTRATION_FOLDER"

// marked is the environment of a child.
func (s *starter) marked(env []string) []string {
	if s.folder == "" {
		return env
	}
	return append(slices.Clone(env), folderVariable+"="+s.folder)
}

// killMarked kills every process that bears the mark of the folder, and counts those
// that it found. One that is dead and not yet waited for bears none.
func killMarked(folder string) (found int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && bearsMark(pid, folder) && killIfMarked(pid, folder) {
			found++
		}
	}
	return found
}

// killIfMarked holds on to the process before it looks once more: its id may have
// become another's meanwhile.
func killIfMarked(pid int, folder string) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return bearsMark(pid, folder) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

// bearsMark reads what another user's process does not let be read: that is no child.
func bearsMark(pid int, folder string) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	want := []byte(folderVariable + "=" + folder)
	return slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return bytes.Equal(v, want) })
}
