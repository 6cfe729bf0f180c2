package report

import (
	"encoding/hex"
	"fmt"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// A Packing is an operand of a winner beside the same operand packed.
type Packing struct {
	Fusion    string  // name
	Parameter string  // name
	Uses      float64 // executions in a run of the model; 0 is unknown
	// Race is the fusion that reads the operand packed, NAME.packed.PARAMETER, which was raced
	// as any other; the page links its record where it has that.
	Race cache.Fingerprint
	cache.Packing
}

// Saved is the time that packing saves in a run of the model, in seconds; 0 where no gain
// can be told from noise.
func (p Packing) Saved() float64 {
	if p.Pays() == 0 {
		return 0
	}
	return p.Uses * (p.InPlace - p.Packed)
}

// A packingRow is a packing with what the page has of it.
type packingRow struct {
	Packing
	// OfID and RaceID are the sections of the fusion as it is and of the packed one; "" where
	// the page has none. RaceName is the name of that.
	OfID, RaceID, RaceName string
}

// Gain says what packing gains.
func (p packingRow) Gain() string {
	if p.Pays() == 0 {
		return "packing it does not pay, or no gain can be told from noise"
	}
	return fmt.Sprintf("packing it once takes %s and pays from %s on", Seconds(p.Packing.Packing.Packing), Counted(int(p.Pays()), "run"))
}

// link makes the rows of packings, and joins them to the sections of the fusions.
func (v *view) link(all []Packing) {
	sections := map[string]*fusionSection{}
	for _, f := range v.Fusions {
		sections[f.Print] = f
	}
	for _, p := range all {
		row := packingRow{Packing: p}
		of, race := sections[p.Packing.Fusion], sections[hex.EncodeToString(p.Race[:])]
		if of != nil {
			row.OfID = of.ID
		}
		if race != nil {
			row.RaceID, row.RaceName = race.ID, race.Name
			row.PackedPlan = kernels.PlanNames(race.Dims).Stored(p.PackedPlan)
		}
		if of != nil && race != nil {
			race.PackedOf = of.ID
		}
		if of != nil {
			of.Packed = append(of.Packed, row)
		}
		v.Packings = append(v.Packings, row)
	}
}

// packed counts the weights in the summary.
func (v *view) packed() []summaryCell {
	pay := 0
	for _, p := range v.Packings {
		if p.Pays() > 0 {
			pay++
		}
	}
	if len(v.Packings) == 0 {
		return nil
	}
	return []summaryCell{{fmt.Sprintf("%d of %d", pay, len(v.Packings)), "weights pay packed"}}
}
