package symtile

// A DimTile says which indices of one tensor dimension a tile holds: element i
// is index Offset + i·Stride for 0 ≤ i < Size, and it is there only when
// Lower ≤ index < Bound; otherwise it is masked and its value is "do not care".
// Stride is always positive: a reversed dimension is a tile in ascending order
// that the reverse op flips.
type DimTile struct{ Offset, Size, Stride, Lower, Bound Expr }

// A Tile is one DimTile for each dimension of a tensor.
type Tile []DimTile
