// Command lookup measures lookups in snapshots of 10³, 10⁵ and 10⁶ records, from Go, C
// (tilewright_snapshot.h and libtilewright) and Python, beside the goals: `make
// bench-lookup` prints its table. What is not installed is left out, and said. A time is
// the least and the median of many batches: on a machine that others use, the least is
// what the code takes.
//
//	lookup [-records 1000,100000]           the table
//	lookup -make FOLDER -records 1000       a database, a snapshot, fingerprints, and what
//	                                        Go answers to them: for tests of other readers
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/cache"
)

func main() {
	sizes := flag.String("records", "1000,100000,1000000", "numbers of records")
	folder := flag.String("make", "", "make the files for other readers in this folder")
	library := flag.String("library", "", "folder of libtilewright.so and its header")
	publish := flag.String("publish", "", "publish this database, for its memory")
	flag.Parse()
	if err := run(*sizes, *folder, *library, *publish); err != nil {
		fmt.Fprintln(os.Stderr, "lookup:", err)
		os.Exit(1)
	}
}

// run is the command.
func run(sizes, folder, library, publish string) error {
	if publish != "" {
		_, err := cache.Open(publish).Publish(publish + ".snap")
		return err
	}
	var all []int
	for _, text := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		all = append(all, n)
	}
	if folder != "" {
		return makeFiles(folder, all[0])
	}
	return printTable(all, library)
}

// makeFiles makes what other readers are tested with.
func makeFiles(folder string, n int) error {
	path := filepath.Join(folder, "snap")
	db := cache.Open(filepath.Join(folder, "records.db"))
	if _, err := fill(db, n); err != nil {
		return err
	}
	if _, err := db.Publish(path); err != nil {
		return err
	}
	keys := keysOf(n)
	for k := range 20 { // fusions that are not there
		missed := recordOf(n + k)
		missed.Device = device
		keys = append(keys, missed.Key)
	}
	if err := writePrints(filepath.Join(folder, "prints"), keys); err != nil {
		return err
	}
	s, err := cache.OpenSnapshot(path)
	if err != nil {
		return err
	}
	defer s.Close()
	out, err := os.Create(filepath.Join(folder, "answers"))
	if err != nil {
		return err
	}
	defer out.Close()
	return answer(out, s, keys)
}
