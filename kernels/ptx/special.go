package ptx

import "sync"

// A Special is a special register: read-only, with a value of the machine.
type Special uint8

const (
	// NoSpecial is the zero Special: no register.
	NoSpecial Special = iota

	// TidX is the index of the thread in its block in dimension x.
	TidX
	// TidY is the index of the thread in its block in dimension y.
	TidY
	// TidZ is the index of the thread in its block in dimension z.
	TidZ
	// NTidX is the number of threads of a block in dimension x.
	NTidX
	// NTidY is the number of threads of a block in dimension y.
	NTidY
	// NTidZ is the number of threads of a block in dimension z.
	NTidZ
	// CTAidX is the index of the block in the grid in dimension x.
	CTAidX
	// CTAidY is the index of the block in the grid in dimension y.
	CTAidY
	// CTAidZ is the index of the block in the grid in dimension z.
	CTAidZ
	// NCTAidX is the number of blocks of the grid in dimension x.
	NCTAidX
	// NCTAidY is the number of blocks of the grid in dimension y.
	NCTAidY
	// NCTAidZ is the number of blocks of the grid in dimension z.
	NCTAidZ
	// ClusterIDX is the index of the cluster in the grid in dimension x.
	ClusterIDX
	// ClusterIDY is the index of the cluster in the grid in dimension y.
	ClusterIDY
	// ClusterIDZ is the index of the cluster in the grid in dimension z.
	ClusterIDZ
	// NClusterIDX is the number of clusters of the grid in dimension x.
	NClusterIDX
	// NClusterIDY is the number of clusters of the grid in dimension y.
	NClusterIDY
	// NClusterIDZ is the number of clusters of the grid in dimension z.
	NClusterIDZ
	// ClusterCTAidX is the index of the block in its cluster in dimension x.
	ClusterCTAidX
	// ClusterCTAidY is the index of the block in its cluster in dimension y.
	ClusterCTAidY
	// ClusterCTAidZ is the index of the block in its cluster in dimension z.
	ClusterCTAidZ
	// ClusterNCTAidX is the number of blocks of a cluster in dimension x.
	ClusterNCTAidX
	// ClusterNCTAidY is the number of blocks of a cluster in dimension y.
	ClusterNCTAidY
	// ClusterNCTAidZ is the number of blocks of a cluster in dimension z.
	ClusterNCTAidZ
	// LaneID is the lane in the warp.
	LaneID
	// WarpID is the warp in the block; a device may change it.
	WarpID
	// NWarpID is the number of warp identifiers.
	NWarpID
	// SMID is the multiprocessor; a device may change it.
	SMID
	// NSMID is the number of multiprocessor identifiers.
	NSMID
	// GridID is a number of the launch.
	GridID
	// LanemaskEq is the mask of the lane itself.
	LanemaskEq
	// LanemaskLe is the mask of the lanes up to the own one.
	LanemaskLe
	// LanemaskLt is the mask of the lanes below the own one.
	LanemaskLt
	// LanemaskGe is the mask of the lanes from the own one on.
	LanemaskGe
	// LanemaskGt is the mask of the lanes above the own one.
	LanemaskGt
	// Clock is the low word of a cycle counter.
	Clock
	// ClockHi is the high word of the cycle counter.
	ClockHi
	// Clock64 is the cycle counter.
	Clock64
	// Globaltimer is a clock in nanoseconds.
	Globaltimer
	// GlobaltimerLo is the low word of the clock.
	GlobaltimerLo
	// GlobaltimerHi is the high word of the clock.
	GlobaltimerHi
	// DynamicSmemSize is the bytes of dynamic shared memory.
	DynamicSmemSize
	// TotalSmemSize is the bytes of shared memory of a block.
	TotalSmemSize
	// AggrSmemSize is the bytes of shared memory with the part of the system.
	AggrSmemSize
	// IsExplicitCluster is 1 in launches with clusters.
	IsExplicitCluster
	// ClusterCTARank is the rank of the block in its cluster.
	ClusterCTARank
	// ClusterNCTARank is the number of blocks of a cluster.
	ClusterNCTARank

	// numSpecials is the number of special registers.
	numSpecials
)

// specials lists the name, the type, and the minimum PTX ISA version and target
// of each special register, in the order of section 10 of the PTX ISA.
var specials = [...]struct {
	name string
	typ  Type
	isa  Version
	sm   int
}{
	TidX:              {"%tid.x", U32, Version{1, 0}, 0},
	TidY:              {"%tid.y", U32, Version{1, 0}, 0},
	TidZ:              {"%tid.z", U32, Version{1, 0}, 0},
	NTidX:             {"%ntid.x", U32, Version{1, 0}, 0},
	NTidY:             {"%ntid.y", U32, Version{1, 0}, 0},
	NTidZ:             {"%ntid.z", U32, Version{1, 0}, 0},
	CTAidX:            {"%ctaid.x", U32, Version{1, 0}, 0},
	CTAidY:            {"%ctaid.y", U32, Version{1, 0}, 0},
	CTAidZ:            {"%ctaid.z", U32, Version{1, 0}, 0},
	NCTAidX:           {"%nctaid.x", U32, Version{1, 0}, 0},
	NCTAidY:           {"%nctaid.y", U32, Version{1, 0}, 0},
	NCTAidZ:           {"%nctaid.z", U32, Version{1, 0}, 0},
	ClusterIDX:        {"%clusterid.x", U32, Version{7, 8}, 90},
	ClusterIDY:        {"%clusterid.y", U32, Version{7, 8}, 90},
	ClusterIDZ:        {"%clusterid.z", U32, Version{7, 8}, 90},
	NClusterIDX:       {"%nclusterid.x", U32, Version{7, 8}, 90},
	NClusterIDY:       {"%nclusterid.y", U32, Version{7, 8}, 90},
	NClusterIDZ:       {"%nclusterid.z", U32, Version{7, 8}, 90},
	ClusterCTAidX:     {"%cluster_ctaid.x", U32, Version{7, 8}, 90},
	ClusterCTAidY:     {"%cluster_ctaid.y", U32, Version{7, 8}, 90},
	ClusterCTAidZ:     {"%cluster_ctaid.z", U32, Version{7, 8}, 90},
	ClusterNCTAidX:    {"%cluster_nctaid.x", U32, Version{7, 8}, 90},
	ClusterNCTAidY:    {"%cluster_nctaid.y", U32, Version{7, 8}, 90},
	ClusterNCTAidZ:    {"%cluster_nctaid.z", U32, Version{7, 8}, 90},
	LaneID:            {"%laneid", U32, Version{1, 3}, 0},
	WarpID:            {"%warpid", U32, Version{1, 3}, 0},
	NWarpID:           {"%nwarpid", U32, Version{2, 0}, 20},
	SMID:              {"%smid", U32, Version{1, 3}, 0},
	NSMID:             {"%nsmid", U32, Version{2, 0}, 20},
	GridID:            {"%gridid", U64, Version{3, 0}, 30},
	LanemaskEq:        {"%lanemask_eq", U32, Version{2, 0}, 20},
	LanemaskLe:        {"%lanemask_le", U32, Version{2, 0}, 20},
	LanemaskLt:        {"%lanemask_lt", U32, Version{2, 0}, 20},
	LanemaskGe:        {"%lanemask_ge", U32, Version{2, 0}, 20},
	LanemaskGt:        {"%lanemask_gt", U32, Version{2, 0}, 20},
	Clock:             {"%clock", U32, Version{1, 0}, 0},
	ClockHi:           {"%clock_hi", U32, Version{5, 0}, 20},
	Clock64:           {"%clock64", U64, Version{2, 0}, 20},
	Globaltimer:       {"%globaltimer", U64, Version{3, 1}, 30},
	GlobaltimerLo:     {"%globaltimer_lo", U32, Version{3, 1}, 30},
	GlobaltimerHi:     {"%globaltimer_hi", U32, Version{3, 1}, 30},
	DynamicSmemSize:   {"%dynamic_smem_size", U32, Version{4, 1}, 20},
	TotalSmemSize:     {"%total_smem_size", U32, Version{4, 1}, 20},
	AggrSmemSize:      {"%aggr_smem_size", U32, Version{8, 1}, 90},
	IsExplicitCluster: {"%is_explicit_cluster", Pred, Version{7, 8}, 90},
	ClusterCTARank:    {"%cluster_ctarank", U32, Version{7, 8}, 90},
	ClusterNCTARank:   {"%cluster_nctarank", U32, Version{7, 8}, 90},
}

// String is the special register as written.
func (s Special) String() string {
	if s < numSpecials {
		return specials[s].name
	}
	return "%none"
}

// Type is the type of the special register; mov may read a 64-bit one as b64.
func (s Special) Type() Type {
	if s < numSpecials {
		return specials[s].typ
	}
	return NoMod
}

// specialByName finds special registers by their names.
var specialByName = sync.OnceValue(func() map[string]Special {
	m := make(map[string]Special, numSpecials)
	for s := NoSpecial + 1; s < numSpecials; s++ {
		m[s.String()] = s
	}
	return m
})
