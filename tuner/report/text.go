package report

import "fmt"

// Seconds formats a time, given in seconds, with three digits and a unit:
// "1.23 ms". 0 is "-".
func Seconds(s float64) string {
	switch {
	case s == 0:
		return "-"
	case s < 0:
		return "-" + Seconds(-s)
	case s < 1e-6:
		return fmt.Sprintf("%.3g ns", s*1e9)
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

// UpperEnd formats the upper end of a record's speed-up interval, which is 0 where
// it is unknown.
func UpperEnd(ratio float64) string {
	if ratio == 0 {
		return "?"
	}
	return fmt.Sprintf("%.2f", ratio)
}

// percent formats a record's regret, which is negative where it is unknown.
func percent(regret float64) string {
	if regret < 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f %%", 100*regret)
}
