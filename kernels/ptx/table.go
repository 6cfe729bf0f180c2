package ptx

import (
	"strings"
	"sync"
)

// modSets are the sets of modifiers that rows name in capitals.
var modSets = map[string]string{
	"RND":  "rn,rz,rm,rp",
	"IRND": "rni,rzi,rmi,rpi",

	"SPACE":     "const,global,local,param,param::entry,shared,shared::cta,shared::cluster",
	"STSPACE":   "global,local,shared,shared::cta,shared::cluster",
	"SHAREABLE": "global,shared,shared::cta,shared::cluster",
	"WINDOW":    "const,global,local,shared,shared::cta,shared::cluster",
	"ATSPACE":   "global,shared,shared::cta,shared::cluster",
	"SHARED":    "shared,shared::cta",
	"WSPACE":    "global,shared,shared::cta",
	"ANYSH":     "shared,shared::cta,shared::cluster",

	"COP":    "ca,cg,cs,lu,cv",
	"STCOP":  "wb,cg,cs,wt",
	"EVICT":  "L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate",
	"EVICT2": "L2::evict_normal,L2::evict_first,L2::evict_last",
	"HINT":   "L2::cache_hint",
	"PREF":   "L2::64B,L2::128B,L2::256B",

	"SCOPE": "cta,cluster,gpu,sys",
	"SEM":   "relaxed,acquire,release,acq_rel",
	"VEC":   "v2,v4",
	"ARITY": "v2,v4,v8",
	"NUM":   "x1,x2,x4",
	"DIM":   "1d,2d,3d,4d,5d",

	"INT":  "u16,u32,u64,s16,s32,s64",
	"INT8": "u8,u16,u32,u64,s8,s16,s32,s64",
	"CC":   "u32,s32,u64,s64",
	"BITS": "b16,b32,b64",
	"MOVE": "b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64",
	"MEM":  "b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64",

	"CMPU": "eq,ne,lt,le,gt,ge,lo,ls,hi,hs",
	"CMPS": "eq,ne,lt,le,gt,ge",
	"CMPF": "eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan",
	"BOOL": "and,or,xor",
	"HALF": "f16,f16x2",
	"BF":   "bf16,bf16x2",
	"F8X2": "e4m3x2,e5m2x2",

	"WGMMA8": "m64n8k32,m64n16k32,m64n24k32,m64n32k32,m64n48k32,m64n64k32,m64n80k32,m64n96k32,m64n112k32,m64n128k32," +
		"m64n144k32,m64n160k32,m64n176k32,m64n192k32,m64n208k32,m64n224k32,m64n240k32,m64n256k32",
}

// gate is the minimum PTX ISA version and target of a modifier, independent of
// its opcode.
type gate struct {
	mods    string
	isa, sm string
}

// modGates are the modifiers that are newer than the rows that contain them, from
// the notes of the sections that the rows name.
var modGates = []gate{
	{"L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate", "7.4", "70"},
	{"L2::evict_normal,L2::evict_first,L2::evict_last", "7.4", "80"},
	{"L2::64B,L2::128B", "7.4", "75"},
	{"L2::256B,L2::cache_hint", "7.4", "80"},
	{"cluster,shared::cluster", "7.8", "90"},
	{"shared::cta", "7.8", "30"},
	{"param::entry", "8.3", "70"},
	{"weak,relaxed,acquire,release,acq_rel,sc", "6.0", "70"},
	{"mmio", "8.2", "70"},
	{"b128", "8.3", "70"},
	{"NaN", "7.0", "80"},
	{"xorsign", "7.2", "86"},
	{"bf16,bf16x2,tf32", "7.0", "80"},
	{"e4m3x2,e5m2x2", "7.8", "89"},
	{"relu", "7.0", "80"},
	{"expect_tx", "8.0", "90"},
}

// gates is modGates by modifier.
var gates = sync.OnceValue(func() map[Mod]form {
	all := map[Mod]form{}
	for _, g := range modGates {
		f := form{}
		f.isa, _ = parseVersion(g.isa)
		f.target, _ = parseTarget("sm_" + g.sm)
		for _, name := range strings.Split(g.mods, ",") {
			all[modByName()[name]] = f
		}
	}
	return all
})
