package ptx

// modSets are the sets of modifiers that rows name in capitals.
var modSets = map[string]string{
	"RND":   "rn,rz,rm,rp",
	"FTZ":   "ftz",
	"SAT":   "sat",
	"SPACE": "const,global,local,param,param::entry,shared,shared::cta,shared::cluster",
	"VEC":   "v2,v4",
	"INT":   "u16,u32,u64,s16,s32,s64",
	"BITS":  "b16,b32,b64",
	"ANY":   "b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64",
}

var moveRows = []row{
	{"9.7.9.3", "1.0", "0", "mov.T >T, T", "T=pred,b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64"},
	{"9.7.9.8", "1.0", "0", "ld{.SPACE}{.VEC}.T >{T~*VEC}, [T*VEC]", "T=b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64"},
	{"9.7.9.11", "1.0", "0", "st{.SPACE}{.VEC}.T [T*VEC], {T~*VEC}", "T=b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64"},
	{"9.7.9.21", "1.0", "0", "cvt.T.S >T~, S~", "T=u8,u16,u32,u64,s8,s16,s32,s64 S=u8,u16,u32,u64,s8,s16,s32,s64"},
}

var intRows = []row{
	{"9.7.1.1", "1.0", "0", "add.INT >INT, INT, INT", ""},
	{"9.7.1.2", "1.0", "0", "sub.INT >INT, INT, INT", ""},
	{"9.7.1.3", "1.0", "0", "mul.lo.INT >INT, INT, INT", ""},
	{"9.7.1.3", "1.0", "0", "mul.wide.u32 >u64, u32, u32", ""},
	{"9.7.1.4", "1.0", "0", "mad.lo.INT >INT, INT, INT, INT", ""},
	{"9.7.1.8", "1.0", "0", "div.INT >INT, INT, INT", ""},
	{"9.7.1.9", "1.0", "0", "rem.INT >INT, INT, INT", ""},
	{"9.7.1.12", "1.0", "0", "min.INT >INT, INT, INT", ""},
	{"9.7.1.13", "1.0", "0", "max.INT >INT, INT, INT", ""},
}
var floatRows = []row{
	{"9.7.3.3", "1.0", "0", "add{.RND}{.FTZ}{.SAT}.f32 >f32, f32, f32", ""},
	{"9.7.3.6", "1.0", "0", "fma.RND{.FTZ}{.SAT}.f32 >f32, f32, f32, f32", ""},
}
var logicRows = []row{
	{"9.7.8.1", "1.0", "0", "and.T >T, T, T", "T=pred,b16,b32,b64"},
	{"9.7.8.2", "1.0", "0", "or.T >T, T, T", "T=pred,b16,b32,b64"},
	{"9.7.8.3", "1.0", "0", "xor.T >T, T, T", "T=pred,b16,b32,b64"},
	{"9.7.8.8", "1.0", "0", "shl.BITS >BITS, BITS, u32", ""},
	{"9.7.8.9", "1.0", "0", "shr.T >T, T, u32", "T=b16,b32,b64,u16,u32,u64,s16,s32,s64"},
	{"9.7.6.2", "1.0", "0", "setp.CMP.INT >p|q, INT, INT", "CMP=eq,ne,lt,le,gt,ge"},
}
var controlRows = []row{
	{"9.7.12.3", "1.0", "0", "bra{.uni} label", ""},
	{"9.7.12.6", "1.0", "0", "ret", ""},
}
var syncRows = []row{}
var atomicRows = []row{}
var copyRows = []row{}
var matrixRows = []row{
	{"9.7.15.5.14", "8.0", "90a", "wgmma.mma_async.sync.aligned.SHAPE.f32.bf16.bf16 ={f32*N/2}, b64, b64, p, #-1..1, #-1..1, #0..1, #0..1", "SHAPE=m64n*k16"},
}
