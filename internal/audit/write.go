package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/renameio/v2"

	"karui/internal/batch"
)

// MayWrite tells why a report must not be written to a file: it is there, and no report
// of before. With overwrite only what is no file at all is in the way.
func MayWrite(path string, overwrite bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write %s: %w", path, withoutPath(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("write %s: it is no file; choose another name with -o", path)
	case overwrite:
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, withoutPath(err))
	}
	defer file.Close()
	prefix := make([]byte, 512)
	n, err := io.ReadFull(file, prefix)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("write %s: %w", path, withoutPath(err))
	}
	if !bytes.Contains(prefix[:n], []byte(Mark)) {
		return fmt.Errorf("write %s: the file exists and is no report of karui audit; choose another name with -o, or add --overwrite", path)
	}
	return nil
}

// WriteFile writes a report to a file, whole or not at all.
func WriteFile(path string, subject Subject, images []Image, total batch.Summary) error {
	file, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithExistingPermissions())
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	defer func() { _ = file.Cleanup() }() // nothing is left where the report was written
	if err := WriteHTML(file, subject, images, total); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
