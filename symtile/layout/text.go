package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// ExtentsText prints the extents of an array as 3x5.
func ExtentsText(dims []int64) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(parts, "x")
}

// ListText prints [0, 2, 1].
func ListText[T any](xs []T) string {
	parts := make([]string, len(xs))
	for i, x := range xs {
		parts[i] = fmt.Sprint(x)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// CountText prints "1 line", "2 lines".
func CountText(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// BytesText prints a number of bytes as "1.5 KiB".
func BytesText(n int64) string {
	units := []string{
		"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB",
	}
	x, u := float64(n), 0
	for ; x >= 1024 && u < len(units)-1; u++ {
		x /= 1024
	}
	if u == 0 || x == float64(int64(x)) {
		return fmt.Sprintf("%d %s", int64(x), units[u])
	}
	return fmt.Sprintf("%.3g %s", x, units[u])
}
