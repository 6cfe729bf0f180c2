package amd64

// An Op names an instruction as Intel does. What operands it takes is in the
// table of instructions.
type Op uint16

// The instructions, in the order of the table. In comments d is the destination,
// a and b are the other operands; halves are those of 16 bytes of a vector of 32,
// between which most shuffles move nothing.
const (
	// Moves of vectors and of their low elements.
	// VMOVUPS moves packed f32 to or from any address.
	VMOVUPS Op = iota + 1
	// VMOVUPD moves packed f64 to or from any address.
	VMOVUPD
	// VMOVAPS moves packed f32 to or from an aligned address.
	VMOVAPS
	// VMOVAPD moves packed f64 to or from an aligned address.
	VMOVAPD
	// VMOVDQU moves packed integers to or from any address.
	VMOVDQU
	// VMOVDQA moves packed integers to or from an aligned address.
	VMOVDQA
	// VMOVSS moves the low f32.
	VMOVSS
	// VMOVSD moves the low f64.
	VMOVSD
	// VMOVD moves the low 32 bits.
	VMOVD
	// VMOVQ moves the low 64 bits.
	VMOVQ
	// VMOVNTPS stores packed f32 past the caches.
	VMOVNTPS
	// VMOVNTPD stores packed f64 past the caches.
	VMOVNTPD
	// VMOVNTDQ stores packed integers past the caches.
	VMOVNTDQ
	// VMASKMOVPS loads or stores the lanes of 32 bits that a mask turns on.
	VMASKMOVPS
	// VMASKMOVPD loads or stores the lanes of 64 bits that a mask turns on.
	VMASKMOVPD
	// VPMASKMOVD loads or stores the integers of 32 bits that a mask turns on.
	VPMASKMOVD
	// VPMASKMOVQ loads or stores the integers of 64 bits that a mask turns on.
	VPMASKMOVQ
	// VBROADCASTSS repeats an f32 in all lanes.
	VBROADCASTSS
	// VBROADCASTSD repeats an f64 in all lanes.
	VBROADCASTSD
	// VBROADCASTF128 repeats 16 bytes of memory in both halves.
	VBROADCASTF128
	// VPBROADCASTB repeats a byte in all lanes.
	VPBROADCASTB
	// VPBROADCASTW repeats 16 bits in all lanes.
	VPBROADCASTW
	// VPBROADCASTD repeats 32 bits in all lanes.
	VPBROADCASTD
	// VPBROADCASTQ repeats 64 bits in all lanes.
	VPBROADCASTQ

	// Floating-point arithmetic.
	// VADDPS adds packed f32.
	VADDPS
	// VADDPD adds packed f64.
	VADDPD
	// VADDSS adds the low f32.
	VADDSS
	// VADDSD adds the low f64.
	VADDSD
	// VSUBPS subtracts packed f32.
	VSUBPS
	// VSUBPD subtracts packed f64.
	VSUBPD
	// VSUBSS subtracts the low f32.
	VSUBSS
	// VSUBSD subtracts the low f64.
	VSUBSD
	// VMULPS multiplies packed f32.
	VMULPS
	// VMULPD multiplies packed f64.
	VMULPD
	// VMULSS multiplies the low f32.
	VMULSS
	// VMULSD multiplies the low f64.
	VMULSD
	// VDIVPS divides packed f32.
	VDIVPS
	// VDIVPD divides packed f64.
	VDIVPD
	// VDIVSS divides the low f32.
	VDIVSS
	// VDIVSD divides the low f64.
	VDIVSD
	// VMINPS is the minimum of packed f32.
	VMINPS
	// VMINPD is the minimum of packed f64.
	VMINPD
	// VMINSS is the minimum of the low f32.
	VMINSS
	// VMINSD is the minimum of the low f64.
	VMINSD
	// VMAXPS is the maximum of packed f32.
	VMAXPS
	// VMAXPD is the maximum of packed f64.
	VMAXPD
	// VMAXSS is the maximum of the low f32.
	VMAXSS
	// VMAXSD is the maximum of the low f64.
	VMAXSD
	// VSQRTPS is the square root of packed f32.
	VSQRTPS
	// VSQRTPD is the square root of packed f64.
	VSQRTPD
	// VSQRTSS is the square root of the low f32.
	VSQRTSS
	// VSQRTSD is the square root of the low f64.
	VSQRTSD
	// VRCPPS approximates the reciprocals of packed f32 with 12 bits.
	VRCPPS
	// VRSQRTPS approximates the reciprocal roots of packed f32 with 12 bits.
	VRSQRTPS
	// VHADDPS adds neighbours of packed f32.
	VHADDPS
	// VHADDPD adds neighbours of packed f64.
	VHADDPD
	// VROUNDPS rounds packed f32 to whole numbers.
	VROUNDPS
	// VROUNDPD rounds packed f64 to whole numbers.
	VROUNDPD
	// VROUNDSS rounds the low f32 to whole numbers.
	VROUNDSS
	// VROUNDSD rounds the low f64 to whole numbers.
	VROUNDSD

	// Fused multiply-add: the digits say which operands are multiplied, 1 is the
	// destination; VFMADD231PS d, a, b is d += a*b.
	// VFMADD132PS is d = d·b + a of packed f32.
	VFMADD132PS
	// VFMADD132PD is d = d·b + a of packed f64.
	VFMADD132PD
	// VFMADD132SS is d = d·b + a of the low f32.
	VFMADD132SS
	// VFMADD132SD is d = d·b + a of the low f64.
	VFMADD132SD
	// VFMADD213PS is d = a·d + b of packed f32.
	VFMADD213PS
	// VFMADD213PD is d = a·d + b of packed f64.
	VFMADD213PD
	// VFMADD213SS is d = a·d + b of the low f32.
	VFMADD213SS
	// VFMADD213SD is d = a·d + b of the low f64.
	VFMADD213SD
	// VFMADD231PS is d = a·b + d of packed f32.
	VFMADD231PS
	// VFMADD231PD is d = a·b + d of packed f64.
	VFMADD231PD
	// VFMADD231SS is d = a·b + d of the low f32.
	VFMADD231SS
	// VFMADD231SD is d = a·b + d of the low f64.
	VFMADD231SD
	// VFMSUB132PS is d = d·b − a of packed f32.
	VFMSUB132PS
	// VFMSUB132PD is d = d·b − a of packed f64.
	VFMSUB132PD
	// VFMSUB132SS is d = d·b − a of the low f32.
	VFMSUB132SS
	// VFMSUB132SD is d = d·b − a of the low f64.
	VFMSUB132SD
	// VFMSUB213PS is d = a·d − b of packed f32.
	VFMSUB213PS
	// VFMSUB213PD is d = a·d − b of packed f64.
	VFMSUB213PD
	// VFMSUB213SS is d = a·d − b of the low f32.
	VFMSUB213SS
	// VFMSUB213SD is d = a·d − b of the low f64.
	VFMSUB213SD
	// VFMSUB231PS is d = a·b − d of packed f32.
	VFMSUB231PS
	// VFMSUB231PD is d = a·b − d of packed f64.
	VFMSUB231PD
	// VFMSUB231SS is d = a·b − d of the low f32.
	VFMSUB231SS
	// VFMSUB231SD is d = a·b − d of the low f64.
	VFMSUB231SD
	// VFNMADD132PS is d = −d·b + a of packed f32.
	VFNMADD132PS
	// VFNMADD132PD is d = −d·b + a of packed f64.
	VFNMADD132PD
	// VFNMADD132SS is d = −d·b + a of the low f32.
	VFNMADD132SS
	// VFNMADD132SD is d = −d·b + a of the low f64.
	VFNMADD132SD
	// VFNMADD213PS is d = −a·d + b of packed f32.
	VFNMADD213PS
	// VFNMADD213PD is d = −a·d + b of packed f64.
	VFNMADD213PD
	// VFNMADD213SS is d = −a·d + b of the low f32.
	VFNMADD213SS
	// VFNMADD213SD is d = −a·d + b of the low f64.
	VFNMADD213SD
	// VFNMADD231PS is d = −a·b + d of packed f32.
	VFNMADD231PS
	// VFNMADD231PD is d = −a·b + d of packed f64.
	VFNMADD231PD
	// VFNMADD231SS is d = −a·b + d of the low f32.
	VFNMADD231SS
	// VFNMADD231SD is d = −a·b + d of the low f64.
	VFNMADD231SD
	// VFNMSUB132PS is d = −d·b − a of packed f32.
	VFNMSUB132PS
	// VFNMSUB132PD is d = −d·b − a of packed f64.
	VFNMSUB132PD
	// VFNMSUB132SS is d = −d·b − a of the low f32.
	VFNMSUB132SS
	// VFNMSUB132SD is d = −d·b − a of the low f64.
	VFNMSUB132SD
	// VFNMSUB213PS is d = −a·d − b of packed f32.
	VFNMSUB213PS
	// VFNMSUB213PD is d = −a·d − b of packed f64.
	VFNMSUB213PD
	// VFNMSUB213SS is d = −a·d − b of the low f32.
	VFNMSUB213SS
	// VFNMSUB213SD is d = −a·d − b of the low f64.
	VFNMSUB213SD
	// VFNMSUB231PS is d = −a·b − d of packed f32.
	VFNMSUB231PS
	// VFNMSUB231PD is d = −a·b − d of packed f64.
	VFNMSUB231PD
	// VFNMSUB231SS is d = −a·b − d of the low f32.
	VFNMSUB231SS
	// VFNMSUB231SD is d = −a·b − d of the low f64.
	VFNMSUB231SD

	// Bits, comparisons, selection.
	// VANDPS is the conjunction of bits of packed f32.
	VANDPS
	// VANDPD is the conjunction of bits of packed f64.
	VANDPD
	// VANDNPS is the conjunction of bits, the first operand inverted, of packed f32.
	VANDNPS
	// VANDNPD is the conjunction of bits, the first operand inverted, of packed f64.
	VANDNPD
	// VORPS is the disjunction of bits of packed f32.
	VORPS
	// VORPD is the disjunction of bits of packed f64.
	VORPD
	// VXORPS is the exclusive disjunction of bits of packed f32.
	VXORPS
	// VXORPD is the exclusive disjunction of bits of packed f64.
	VXORPD
	// VCMPPS compares packed f32.
	VCMPPS
	// VCMPPD compares packed f64.
	VCMPPD
	// VCMPSS compares the low f32.
	VCMPSS
	// VCMPSD compares the low f64.
	VCMPSD
	// VBLENDVPS selects packed f32 by the sign bits of a vector.
	VBLENDVPS
	// VBLENDVPD selects packed f64 by the sign bits of a vector.
	VBLENDVPD
	// VPBLENDVB selects bytes by the sign bits of a vector.
	VPBLENDVB
	// VBLENDPS selects packed f32 by an immediate.
	VBLENDPS
	// VBLENDPD selects packed f64 by an immediate.
	VBLENDPD
	// VPBLENDD selects 32-bit lanes by an immediate.
	VPBLENDD
	// VPBLENDW selects 16-bit lanes by an immediate.
	VPBLENDW
	// VMOVMSKPS collects the signs of packed f32.
	VMOVMSKPS
	// VMOVMSKPD collects the signs of packed f64.
	VMOVMSKPD
	// VPMOVMSKB collects the sign bits of bytes.
	VPMOVMSKB
	// VPTEST sets flags by the conjunction of two vectors.
	VPTEST
	// VTESTPS sets flags by the signs of packed f32.
	VTESTPS

	// Conversions.
	// VCVTDQ2PS converts s32 to f32.
	VCVTDQ2PS
	// VCVTPS2DQ converts f32 to s32, rounded.
	VCVTPS2DQ
	// VCVTTPS2DQ converts f32 to s32, truncated.
	VCVTTPS2DQ
	// VCVTPS2PD converts f32 to f64.
	VCVTPS2PD
	// VCVTPD2PS converts f64 to f32.
	VCVTPD2PS
	// VCVTDQ2PD converts s32 to f64.
	VCVTDQ2PD
	// VCVTPD2DQ converts f64 to s32, rounded.
	VCVTPD2DQ
	// VCVTTPD2DQ converts f64 to s32, truncated.
	VCVTTPD2DQ
	// VCVTSS2SD converts the low f32 to f64.
	VCVTSS2SD
	// VCVTSD2SS converts the low f64 to f32.
	VCVTSD2SS
	// VCVTSI2SS converts an integer register to f32.
	VCVTSI2SS
	// VCVTSI2SD converts an integer register to f64.
	VCVTSI2SD
	// VCVTSS2SI converts the low f32 to an integer register, rounded.
	VCVTSS2SI
	// VCVTTSS2SI converts the low f32 to an integer register, truncated.
	VCVTTSS2SI
	// VCVTSD2SI converts the low f64 to an integer register, rounded.
	VCVTSD2SI
	// VCVTTSD2SI converts the low f64 to an integer register, truncated.
	VCVTTSD2SI
	// VCVTPH2PS converts f16 to f32.
	VCVTPH2PS
	// VCVTPS2PH converts f32 to f16.
	VCVTPS2PH

	// Integer vectors.
	// VPADDB adds bytes.
	VPADDB
	// VPADDW adds 16-bit lanes.
	VPADDW
	// VPADDD adds 32-bit lanes.
	VPADDD
	// VPADDQ adds 64-bit lanes.
	VPADDQ
	// VPSUBB subtracts bytes.
	VPSUBB
	// VPSUBW subtracts 16-bit lanes.
	VPSUBW
	// VPSUBD subtracts 32-bit lanes.
	VPSUBD
	// VPSUBQ subtracts 64-bit lanes.
	VPSUBQ
	// VPMULLW multiplies 16-bit lanes, low halves.
	VPMULLW
	// VPMULHW multiplies s16, high halves.
	VPMULHW
	// VPMULUDQ multiplies the even u32 to u64.
	VPMULUDQ
	// VPMADDWD multiplies s16 and adds neighbours as s32.
	VPMADDWD
	// VPAND is the conjunction of bits.
	VPAND
	// VPANDN is the conjunction of bits with the first operand inverted.
	VPANDN
	// VPOR is the disjunction of bits.
	VPOR
	// VPXOR is the exclusive disjunction of bits.
	VPXOR
	// VPCMPEQB compares bytes for equality.
	VPCMPEQB
	// VPCMPEQW compares 16-bit lanes for equality.
	VPCMPEQW
	// VPCMPEQD compares 32-bit lanes for equality.
	VPCMPEQD
	// VPCMPGTB compares bytes for greater, signed.
	VPCMPGTB
	// VPCMPGTW compares 16-bit lanes for greater, signed.
	VPCMPGTW
	// VPCMPGTD compares 32-bit lanes for greater, signed.
	VPCMPGTD
	// VPACKSSDW narrows s32 to s16 with saturation.
	VPACKSSDW
	// VPACKSSWB narrows s16 to s8 with saturation.
	VPACKSSWB
	// VPACKUSWB narrows s16 to u8 with saturation.
	VPACKUSWB
	// VPUNPCKLBW interleaves the low bytes of two vectors, within halves.
	VPUNPCKLBW
	// VPUNPCKLWD interleaves the low 16-bit lanes of two vectors, within halves.
	VPUNPCKLWD
	// VPUNPCKLDQ interleaves the low 32-bit lanes of two vectors, within halves.
	VPUNPCKLDQ
	// VPUNPCKLQDQ interleaves the low 64-bit lanes of two vectors, within halves.
	VPUNPCKLQDQ
	// VPUNPCKHBW interleaves the high bytes of two vectors, within halves.
	VPUNPCKHBW
	// VPUNPCKHWD interleaves the high 16-bit lanes of two vectors, within halves.
	VPUNPCKHWD
	// VPUNPCKHDQ interleaves the high 32-bit lanes of two vectors, within halves.
	VPUNPCKHDQ
	// VPUNPCKHQDQ interleaves the high 64-bit lanes of two vectors, within halves.
	VPUNPCKHQDQ
	// VPMULLD multiplies 32-bit lanes, low halves.
	VPMULLD
	// VPMULDQ multiplies the even s32 to s64.
	VPMULDQ
	// VPMADDUBSW multiplies u8 by s8 and adds neighbours as s16 with saturation.
	VPMADDUBSW
	// VPACKUSDW narrows s32 to u16 with saturation.
	VPACKUSDW
	// VPADDUSB adds unsigned bytes with saturation.
	VPADDUSB
	// VPMINSB is the minimum of signed bytes.
	VPMINSB
	// VPMAXSB is the maximum of signed bytes.
	VPMAXSB
	// VPMINUB is the minimum of unsigned bytes.
	VPMINUB
	// VPMAXUB is the maximum of unsigned bytes.
	VPMAXUB
	// VPABSB is the absolute value of signed bytes.
	VPABSB
	// VPCMPEQQ compares 64-bit lanes for equality.
	VPCMPEQQ
	// VPCMPGTQ compares 64-bit lanes for greater, signed.
	VPCMPGTQ
	// VPMINSD is the minimum of s32.
	VPMINSD
	// VPMAXSD is the maximum of s32.
	VPMAXSD
	// VPMINUD is the minimum of u32.
	VPMINUD
	// VPMAXUD is the maximum of u32.
	VPMAXUD
	// VPSIGND negates or zeroes s32 by the signs of another vector.
	VPSIGND
	// VPSHUFB permutes bytes within halves.
	VPSHUFB
	// VPSLLVD shifts 32-bit lanes left, each by its own count.
	VPSLLVD
	// VPSRLVD shifts 32-bit lanes right, each by its own count.
	VPSRLVD
	// VPSRAVD shifts s32 right, each by its own count.
	VPSRAVD
	// VPSLLVQ shifts 64-bit lanes left, each by its own count.
	VPSLLVQ
	// VPSRLVQ shifts 64-bit lanes right, each by its own count.
	VPSRLVQ
	// VPABSD is the absolute value of s32.
	VPABSD
	// VPSLLW shifts 16-bit lanes left by one count.
	VPSLLW
	// VPSLLD shifts 32-bit lanes left by one count.
	VPSLLD
	// VPSLLQ shifts 64-bit lanes left by one count.
	VPSLLQ
	// VPSRLW shifts 16-bit lanes right with zeros by one count.
	VPSRLW
	// VPSRLD shifts 32-bit lanes right with zeros by one count.
	VPSRLD
	// VPSRLQ shifts 64-bit lanes right with zeros by one count.
	VPSRLQ
	// VPSRAW shifts 16-bit lanes right with the sign by one count.
	VPSRAW
	// VPSRAD shifts 32-bit lanes right with the sign by one count.
	VPSRAD
	// VPSLLDQ shifts halves left by bytes.
	VPSLLDQ
	// VPSRLDQ shifts halves right by bytes.
	VPSRLDQ
	// VPMOVSXBW widens bytes to 16 bits with their signs.
	VPMOVSXBW
	// VPMOVSXBD widens bytes to 32 bits with their signs.
	VPMOVSXBD
	// VPMOVSXWD widens 16-bit integers to 32 bits with their signs.
	VPMOVSXWD
	// VPMOVSXWQ widens 16-bit integers to 64 bits with their signs.
	VPMOVSXWQ
	// VPMOVSXDQ widens 32-bit integers to 64 bits with their signs.
	VPMOVSXDQ
	// VPMOVZXBW widens bytes to 16 bits with zeros.
	VPMOVZXBW
	// VPMOVZXBD widens bytes to 32 bits with zeros.
	VPMOVZXBD
	// VPMOVZXWD widens 16-bit integers to 32 bits with zeros.
	VPMOVZXWD
	// VPMOVZXWQ widens 16-bit integers to 64 bits with zeros.
	VPMOVZXWQ
	// VPMOVZXDQ widens 32-bit integers to 64 bits with zeros.
	VPMOVZXDQ

	// Shuffles within and across the halves.
	// VUNPCKLPS interleaves the low packed f32 of two vectors, within halves.
	VUNPCKLPS
	// VUNPCKHPS interleaves the high packed f32 of two vectors, within halves.
	VUNPCKHPS
	// VUNPCKLPD interleaves the low packed f64 of two vectors, within halves.
	VUNPCKLPD
	// VUNPCKHPD interleaves the high packed f64 of two vectors, within halves.
	VUNPCKHPD
	// VSHUFPS selects two f32 of each of two vectors, within halves.
	VSHUFPS
	// VSHUFPD selects one f64 of each of two vectors, within halves.
	VSHUFPD
	// VPSHUFD permutes 32-bit lanes within halves by an immediate.
	VPSHUFD
	// VPALIGNR shifts the concatenation of two halves right by bytes.
	VPALIGNR
	// VPERMILPS permutes f32 within halves.
	VPERMILPS
	// VPERMILPD permutes f64 within halves.
	VPERMILPD
	// VMOVSHDUP repeats the odd f32.
	VMOVSHDUP
	// VMOVSLDUP repeats the even f32.
	VMOVSLDUP
	// VMOVHLPS moves two high f32 to the low end.
	VMOVHLPS
	// VMOVLHPS moves two low f32 to the high end.
	VMOVLHPS
	// VPERM2F128 selects halves of two vectors.
	VPERM2F128
	// VPERM2I128 selects halves of two integer vectors.
	VPERM2I128
	// VPERMQ permutes 64-bit lanes by an immediate.
	VPERMQ
	// VPERMPD permutes f64 by an immediate.
	VPERMPD
	// VPERMPS permutes f32 by a vector.
	VPERMPS
	// VPERMD permutes 32-bit lanes by a vector.
	VPERMD
	// VSHUFF32X4 selects two quarters of each of two vectors of 64 bytes.
	VSHUFF32X4
	// VINSERTF64X4 inserts a half of 64 bytes.
	VINSERTF64X4
	// VEXTRACTF64X4 extracts a half of 64 bytes.
	VEXTRACTF64X4
	// VPMOVDW narrows integers of 32 bits to their low halves.
	VPMOVDW
	// VCVTNEPS2BF16 rounds packed f32 to bf16, with zeros for denormal numbers.
	VCVTNEPS2BF16
	// VPMOVM2D makes lanes of 32 bits of a mask: all ones or zeros.
	VPMOVM2D
	// VPMOVD2M makes a mask of the signs of lanes of 32 bits.
	VPMOVD2M
	// VBLENDMPS selects packed f32 by a mask: the last operand where it is on.
	VBLENDMPS
	// VBLENDMPD selects packed f64 by a mask: the last operand where it is on.
	VBLENDMPD
	// VPMOVM2B makes bytes of a mask: all ones or zeros.
	VPMOVM2B
	// VPMOVM2Q makes lanes of 64 bits of a mask: all ones or zeros.
	VPMOVM2Q
	// VPMOVQ2M makes a mask of the signs of lanes of 64 bits.
	VPMOVQ2M
	// VPMOVDB narrows integers of 32 bits to their low bytes.
	VPMOVDB
	// VPMOVQD narrows integers of 64 bits to their low halves.
	VPMOVQD
	// VCVTQQ2PD converts s64 to f64.
	VCVTQQ2PD
	// VCVTQQ2PS converts s64 to f32.
	VCVTQQ2PS
	// VPMINSQ is the minimum of s64.
	VPMINSQ
	// VPMAXSQ is the maximum of s64.
	VPMAXSQ
	// VPMINUQ is the minimum of u64.
	VPMINUQ
	// VPMAXUQ is the maximum of u64.
	VPMAXUQ
	// VEXTRACTF128 extracts a half.
	VEXTRACTF128
	// VEXTRACTI128 extracts a half of integers.
	VEXTRACTI128
	// VINSERTF128 inserts a half.
	VINSERTF128
	// VINSERTI128 inserts a half of integers.
	VINSERTI128
	// VPEXTRB extracts a byte.
	VPEXTRB
	// VPEXTRW extracts 16 bits.
	VPEXTRW
	// VPEXTRD extracts 32 bits.
	VPEXTRD
	// VPEXTRQ extracts 64 bits.
	VPEXTRQ
	// VPINSRB inserts a byte.
	VPINSRB
	// VPINSRW inserts 16 bits.
	VPINSRW
	// VPINSRD inserts 32 bits.
	VPINSRD
	// VPINSRQ inserts 64 bits.
	VPINSRQ
	// VZEROUPPER zeroes the upper halves of all vector registers.
	VZEROUPPER

	// Integers: loop counters and addresses.
	// MOV moves a register, memory or an immediate.
	MOV
	// LEA computes an address.
	LEA
	// MOVZXB loads a byte with zeros before it.
	MOVZXB
	// MOVZXW loads 16 bits with zeros before them.
	MOVZXW
	// MOVSXB loads a byte with its sign before it.
	MOVSXB
	// MOVSXD loads 32 bits with their sign before them.
	MOVSXD
	// ADD adds.
	ADD
	// OR is the disjunction of bits.
	OR
	// AND is the conjunction of bits.
	AND
	// SUB subtracts.
	SUB
	// XOR is the exclusive disjunction of bits.
	XOR
	// CMP subtracts for the flags only.
	CMP
	// TEST conjoins for the flags only.
	TEST
	// IMUL multiplies signed integers.
	IMUL
	// SHL shifts left.
	SHL
	// SHR shifts right with zeros.
	SHR
	// SAR shifts right with the sign.
	SAR
	// INC adds 1.
	INC
	// DEC subtracts 1.
	DEC
	// NOT inverts bits.
	NOT
	// NEG negates.
	NEG
	// CMOVB moves if below, unsigned.
	CMOVB
	// CMOVAE moves if above or equal, unsigned.
	CMOVAE
	// CMOVE moves if equal.
	CMOVE
	// CMOVNE moves if not equal.
	CMOVNE
	// CMOVBE moves if below or equal, unsigned.
	CMOVBE
	// CMOVA moves if above, unsigned.
	CMOVA
	// CMOVS moves if negative.
	CMOVS
	// CMOVNS moves if not negative.
	CMOVNS
	// CMOVL moves if less, signed.
	CMOVL
	// CMOVGE moves if greater or equal, signed.
	CMOVGE
	// CMOVLE moves if less or equal, signed.
	CMOVLE
	// CMOVG moves if greater, signed.
	CMOVG
	// PREFETCHNTA prefetches for one use.
	PREFETCHNTA
	// PREFETCHT0 prefetches to all caches.
	PREFETCHT0
	// PREFETCHT1 prefetches to the second-level cache.
	PREFETCHT1
	// PREFETCHT2 prefetches to the third-level cache.
	PREFETCHT2
	// PREFETCHW prefetches to write.
	PREFETCHW

	// Control.
	// JMP jumps.
	JMP
	// JO jumps on overflow.
	JO
	// JNO jumps unless there was overflow.
	JNO
	// JB jumps if below, unsigned.
	JB
	// JAE jumps if above or equal, unsigned.
	JAE
	// JE jumps if equal.
	JE
	// JNE jumps if not equal.
	JNE
	// JBE jumps if below or equal, unsigned.
	JBE
	// JA jumps if above, unsigned.
	JA
	// JS jumps if negative.
	JS
	// JNS jumps if not negative.
	JNS
	// JP jumps on even parity.
	JP
	// JNP jumps on odd parity.
	JNP
	// JL jumps if less, signed.
	JL
	// JGE jumps if greater or equal, signed.
	JGE
	// JLE jumps if less or equal, signed.
	JLE
	// JG jumps if greater, signed.
	JG
	// RET returns.
	RET
	// INT3 traps.
	INT3
	// PAUSE slows a loop that spins.
	PAUSE
	// RDTSC reads the time stamp counter.
	RDTSC
	// SFENCE orders stores before it and after it.
	SFENCE
	// LFENCE orders loads before it and after it.
	LFENCE

	opCount = iota + 1
)
