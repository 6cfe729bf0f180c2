package gpu

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/gpu.md names for a defect of the review is there.
func TestReviewedDefects(t *testing.T) {
	page, err := os.ReadFile("../../docs/gpu.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	err = fs.WalkDir(os.DirFS(".."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile("../" + path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (D\d+b?) \|.*$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) != 19 {
		t.Errorf("%d defects are listed, not D0, D0b, D1 … D17", len(rows))
	}
	for _, row := range rows {
		names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row[0], -1)
		for _, name := range names {
			if !strings.Contains(code.String(), "func "+name[1]+"(") {
				t.Errorf("%s: there is no %s", row[1], name[1])
			}
		}
		if len(names) == 0 && !strings.Contains(row[0], "promise") {
			t.Errorf("%s has no test", row[1])
		}
	}
}
