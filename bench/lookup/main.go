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
	var o options
	flag.StringVar(&o.records, "records", "1000,100000,1000000", "numbers of records")
	flag.StringVar(&o.folder, "make", "", "make the files for other readers in this folder")
	flag.StringVar(&o.library, "library", "", "folder of libtilewright.so and its header")
	flag.StringVar(&o.publish, "publish", "", "publish this database, for its memory")
	flag.Parse()
	err := o.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lookup:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	records string // numbers of records, separated by commas
	folder  string // for files; empty: the table is printed
	library string // folder of libtilewright; empty: it is not measured
	publish string // a database that is published, and nothing else
}

// run is the command.
func (o *options) run() error {
	if o.publish != "" {
		_, err := cache.Open(o.publish).Publish(o.publish + ".snap")
		fmt.Println(mostMemory())
		return err
	}
	sizes, err := numbers(o.records)
	if err != nil {
		return err
	}
	if o.folder != "" {
		return makeFiles(o.folder, sizes[0])
	}
	return printTable(sizes, o.library)
}

// mostMemory is the largest resident set that this process had, mapped pages included,
// in MB; 0 where the system does not say. What wait4 says of a process counts the
// memory of the one that has started it.
func mostMemory() (megabytes int) {
	status, _ := os.ReadFile("/proc/self/status")
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	_, _ = fmt.Sscan(line, &megabytes) // in kB
	return megabytes >> 10
}

// numbers are those of a list with commas, at least one.
func numbers(list string) (all []int, err error) {
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// makeFiles makes what other readers are tested with: records.db with n records, its
// snapshot snap, the fingerprints prints of all records and of 20 that are not there, and
// the answers of this package's reader.
func makeFiles(folder string, n int) error {
	path := filepath.Join(folder, "snap")
	db := cache.Open(filepath.Join(folder, "records.db"))
	_, err := fill(db, n)
	if err != nil {
		return err
	}
	_, err = db.Publish(path)
	if err != nil {
		return err
	}
	keys := keysOf(n)
	for k := range 20 { // fusions that are not there
		missed := recordOf(n + k)
		missed.Device = device
		keys = append(keys, missed.Key)
	}
	err = writePrints(filepath.Join(folder, "prints"), keys)
	if err != nil {
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
