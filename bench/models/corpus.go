package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A model is a text of the corpus.
type model struct {
	// Name is that of the model with its pass and kind: "bert.train.mlir".
	Name string
	Text []byte
}

// readCorpus reads the texts of a folder whose names match, in the order of their
// names. What JAX computed of them (expected.json) is beside the small ones, and is
// no text.
func readCorpus(folder string, only *regexp.Regexp) ([]model, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.gz"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no texts: %v", folder, err)
	}
	var all []model
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".gz")
		if name == "expected.json" || !only.MatchString(name) {
			continue
		}
		text, err := readCompressed(file)
		if err != nil {
			return nil, err
		}
		all = append(all, model{name, text})
	}
	return all, nil
}

// readCompressed is the content of a gzip file.
func readCompressed(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return io.ReadAll(unpacked)
}
