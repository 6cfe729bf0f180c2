//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// caughtFaults is what TestInjectedFaults logs: of the faults that are in every run,
// and of those that are in some, the number that was caught and the number of all.
var caughtFaults = regexp.MustCompile(`faults in every run: (\d+) of (\d+) caught; .*: (\d+) of (\d+) caught`)

// injectFaults runs the test of package tuner that races kernels with a fault: every
// constant one is caught, and 95 % of those that show now and then.
func injectFaults(s *session) (r result, err error) {
	if s.faults == 0 {
		r.note = "left out: go test ./tuner has them"
		return r, nil
	}
	out, err := exec.Command(
		"go", "test", "./tuner",
		"-run", "^TestInjectedFaults$",
		"-v",
		"-timeout", "60m",
		"-faults", strconv.Itoa(s.faults),
	).CombinedOutput()
	found := caughtFaults.FindStringSubmatch(string(out))
	if found == nil {
		return r, fmt.Errorf("%v: %s", err, out)
	}
	var n [4]int
	for k, text := range found[1:] {
		n[k], _ = strconv.Atoi(text) // digits, by the expression
	}
	r.tried = n[1] + n[3]
	if err != nil {
		r.harm("%s", strings.TrimSpace(string(out)))
	}
	r.note = fmt.Sprintf("%d of %d in every run caught, %d of %d in 5 to 50 %% of the runs", n[0], n[1], n[2], n[3])
	return r, nil
}
