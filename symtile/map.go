package symtile

// A Map is an indexing map: for every point of the domain (Dims, Ranges and
// Runtime within their ranges, Where holding) the point Results. Over all
// values of Ranges it is a set. Variables carry their own bounds.
type Map struct {
	Dims, Ranges, Runtime []Expr
	Results               []Expr
	Where                 Constraint
	State                 MapState
}

// MapState tells a usable map from one without points and one that is not known.
type MapState uint8

const (
	Known     MapState = iota
	Empty              // provably no point in the domain
	Undefined          // the relation is not known; contagious under Compose
)
