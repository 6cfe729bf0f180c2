package amd64

// instructions is the table of encodings, from the Intel SDM, volume 2. Every
// row is checked against objdump over random operands.
var instructions = withWide([opCount]instruction{
	// Moves of vectors and of their low elements.
	VMOVUPS: {"vmovups", []form{
		{vex0F, 0x10, 0, "RM", args{v, vm}},
		{vex0F, 0x11, 0, "MR", args{mv, v}},
	}},
	VMOVUPD: {"vmovupd", []form{
		{vex660F, 0x10, 0, "RM", args{v, vm}},
		{vex660F, 0x11, 0, "MR", args{mv, v}},
	}},
	VMOVAPS: {"vmovaps", []form{
		{vex0F, 0x28, 0, "RM", args{v, vm}},
		{vex0F, 0x29, 0, "MR", args{mv, v}},
	}},
	VMOVAPD: {"vmovapd", []form{
		{vex660F, 0x28, 0, "RM", args{v, vm}},
		{vex660F, 0x29, 0, "MR", args{mv, v}},
	}},
	VMOVDQU: {"vmovdqu", []form{
		{vexF30F, 0x6f, 0, "RM", args{v, vm}},
		{vexF30F, 0x7f, 0, "MR", args{mv, v}},
	}},
	VMOVDQA: {"vmovdqa", []form{
		{vex660F, 0x6f, 0, "RM", args{v, vm}},
		{vex660F, 0x7f, 0, "MR", args{mv, v}},
	}},
	VMOVSS: {"vmovss", []form{
		{vexF30F, 0x10, 0, "RM", args{x, m32}},
		{vexF30F, 0x11, 0, "MR", args{m32, x}},
		{vexF30F, 0x10, 0, "RVM", args{x, x, x}},
	}},
	VMOVSD: {"vmovsd", []form{
		{vexF20F, 0x10, 0, "RM", args{x, m64}},
		{vexF20F, 0x11, 0, "MR", args{m64, x}},
		{vexF20F, 0x10, 0, "RVM", args{x, x, x}},
	}},
	VMOVD: {"vmovd", []form{
		{vex660F, 0x6e, 0, "RM", args{x, r32 | m32}},
		{vex660F, 0x7e, 0, "MR", args{r32 | m32, x}},
	}},
	VMOVQ: {"vmovq", []form{
		{vexF30F, 0x7e, 0, "RM", args{x, x | m64}},
		{vex660F, 0xd6, 0, "MR", args{m64, x}},
		{vex | p66 | m0F | w1, 0x6e, 0, "RM", args{x, r64}},
		{vex | p66 | m0F | w1, 0x7e, 0, "MR", args{r64, x}},
	}},
	VMOVNTPS: {"vmovntps", []form{{
		vex | m0F, 0x2b, 0, "MR", args{mv, v},
	}}},
	VMOVNTPD: {"vmovntpd", []form{
		{vex660F, 0x2b, 0, "MR", args{mv, v}},
	}},
	VMOVNTDQ: {"vmovntdq", []form{
		{vex660F, 0xe7, 0, "MR", args{mv, v}},
	}},
	VMASKMOVPS: {"vmaskmovps", []form{
		{vex660F38, 0x2c, 0, "RVM", args{v, v, mv}},
		{vex660F38, 0x2e, 0, "MVR", args{mv, v, v}},
	}},
	VMASKMOVPD: {"vmaskmovpd", []form{
		{vex660F38, 0x2d, 0, "RVM", args{v, v, mv}},
		{vex660F38, 0x2f, 0, "MVR", args{mv, v, v}},
	}},
	VPMASKMOVD: {"vpmaskmovd", []form{
		{vex660F38, 0x8c, 0, "RVM", args{v, v, mv}},
		{vex660F38, 0x8e, 0, "MVR", args{mv, v, v}},
	}},
	VPMASKMOVQ: {"vpmaskmovq", []form{
		{vex | p66 | m38 | w1, 0x8c, 0, "RVM", args{v, v, mv}},
		{vex | p66 | m38 | w1, 0x8e, 0, "MVR", args{mv, v, v}},
	}},
	VBROADCASTSS: {"vbroadcastss", []form{
		{vex660F38, 0x18, 0, "RM", args{anyXY, x | m32}},
	}},
	VBROADCASTSD: {"vbroadcastsd", []form{
		{vex660F38, 0x19, 0, "RM", args{y, x | m64}},
	}},
	VBROADCASTF128: {"vbroadcastf128", []form{
		{vex660F38, 0x1a, 0, "RM", args{y, m128}},
	}},
	VPBROADCASTB: {"vpbroadcastb", []form{
		{vex660F38, 0x78, 0, "RM", args{anyXY, x | m8}},
	}},
	VPBROADCASTW: {"vpbroadcastw", []form{
		{vex660F38, 0x79, 0, "RM", args{anyXY, x | m16}},
	}},
	VPBROADCASTD: {"vpbroadcastd", []form{
		{vex660F38, 0x58, 0, "RM", args{anyXY, x | m32}},
	}},
	VPBROADCASTQ: {"vpbroadcastq", []form{
		{vex660F38, 0x59, 0, "RM", args{anyXY, x | m64}},
	}},

	// Floating-point arithmetic.
	VADDPS: {"vaddps", []form{
		{vex0F, 0x58, 0, "RVM", args{v, v, vm}},
	}},
	VADDPD: {"vaddpd", []form{
		{vex660F, 0x58, 0, "RVM", args{v, v, vm}},
	}},
	VADDSS: {"vaddss", []form{{
		vex | pF3 | m0F, 0x58, 0, "RVM", args{x, x, x | m32},
	}}},
	VADDSD: {"vaddsd", []form{{
		vex | pF2 | m0F, 0x58, 0, "RVM", args{x, x, x | m64},
	}}},
	VSUBPS: {"vsubps", []form{
		{vex0F, 0x5c, 0, "RVM", args{v, v, vm}},
	}},
	VSUBPD: {"vsubpd", []form{
		{vex660F, 0x5c, 0, "RVM", args{v, v, vm}},
	}},
	VSUBSS: {"vsubss", []form{{
		vex | pF3 | m0F, 0x5c, 0, "RVM", args{x, x, x | m32},
	}}},
	VSUBSD: {"vsubsd", []form{{
		vex | pF2 | m0F, 0x5c, 0, "RVM", args{x, x, x | m64},
	}}},
	VMULPS: {"vmulps", []form{
		{vex0F, 0x59, 0, "RVM", args{v, v, vm}},
	}},
	VMULPD: {"vmulpd", []form{
		{vex660F, 0x59, 0, "RVM", args{v, v, vm}},
	}},
	VMULSS: {"vmulss", []form{{
		vex | pF3 | m0F, 0x59, 0, "RVM", args{x, x, x | m32},
	}}},
	VMULSD: {"vmulsd", []form{{
		vex | pF2 | m0F, 0x59, 0, "RVM", args{x, x, x | m64},
	}}},
	VDIVPS: {"vdivps", []form{
		{vex0F, 0x5e, 0, "RVM", args{v, v, vm}},
	}},
	VDIVPD: {"vdivpd", []form{
		{vex660F, 0x5e, 0, "RVM", args{v, v, vm}},
	}},
	VDIVSS: {"vdivss", []form{{
		vex | pF3 | m0F, 0x5e, 0, "RVM", args{x, x, x | m32},
	}}},
	VDIVSD: {"vdivsd", []form{{
		vex | pF2 | m0F, 0x5e, 0, "RVM", args{x, x, x | m64},
	}}},
	VMINPS: {"vminps", []form{
		{vex0F, 0x5d, 0, "RVM", args{v, v, vm}},
	}},
	VMINPD: {"vminpd", []form{
		{vex660F, 0x5d, 0, "RVM", args{v, v, vm}},
	}},
	VMINSS: {"vminss", []form{{
		vex | pF3 | m0F, 0x5d, 0, "RVM", args{x, x, x | m32},
	}}},
	VMINSD: {"vminsd", []form{{
		vex | pF2 | m0F, 0x5d, 0, "RVM", args{x, x, x | m64},
	}}},
	VMAXPS: {"vmaxps", []form{
		{vex0F, 0x5f, 0, "RVM", args{v, v, vm}},
	}},
	VMAXPD: {"vmaxpd", []form{
		{vex660F, 0x5f, 0, "RVM", args{v, v, vm}},
	}},
	VMAXSS: {"vmaxss", []form{{
		vex | pF3 | m0F, 0x5f, 0, "RVM", args{x, x, x | m32},
	}}},
	VMAXSD: {"vmaxsd", []form{{
		vex | pF2 | m0F, 0x5f, 0, "RVM", args{x, x, x | m64},
	}}},
	VSQRTPS: {"vsqrtps", []form{{
		vex | m0F, 0x51, 0, "RM", args{v, vm},
	}}},
	VSQRTPD: {"vsqrtpd", []form{
		{vex660F, 0x51, 0, "RM", args{v, vm}},
	}},
	VSQRTSS: {"vsqrtss", []form{{
		vex | pF3 | m0F, 0x51, 0, "RVM", args{x, x, x | m32},
	}}},
	VSQRTSD: {"vsqrtsd", []form{{
		vex | pF2 | m0F, 0x51, 0, "RVM", args{x, x, x | m64},
	}}},
	VRCPPS: {"vrcpps", []form{{
		vex | m0F, 0x53, 0, "RM", args{v, vm},
	}}},
	VRSQRTPS: {"vrsqrtps", []form{{
		vex | m0F, 0x52, 0, "RM", args{v, vm},
	}}},
	VHADDPS: {"vhaddps", []form{
		{vexF20F, 0x7c, 0, "RVM", args{v, v, vm}},
	}},
	VHADDPD: {"vhaddpd", []form{
		{vex660F, 0x7c, 0, "RVM", args{v, v, vm}},
	}},
	VROUNDPS: {"vroundps", []form{
		{vex660F3A, 0x08, 0, "RMI", args{v, vm, u8}},
	}},
	VROUNDPD: {"vroundpd", []form{
		{vex660F3A, 0x09, 0, "RMI", args{v, vm, u8}},
	}},
	VROUNDSS: {"vroundss", []form{{
		vex | p66 | m3A, 0x0a, 0, "RVMI",
		args{x, x, x | m32, u8},
	}}},
	VROUNDSD: {"vroundsd", []form{{
		vex | p66 | m3A, 0x0b, 0, "RVMI",
		args{x, x, x | m64, u8},
	}}},

	// Fused multiply-add: the digits say which operands are multiplied, 1 is the
	// destination; VFMADD231PS d, a, b is d += a*b.
	VFMADD132PS: {"vfmadd132ps", []form{
		{vex660F38, 0x98, 0, "RVM", args{v, v, vm}},
	}},
	VFMADD132PD: {"vfmadd132pd", []form{{
		vex | p66 | m38 | w1, 0x98, 0, "RVM", args{v, v, vm},
	}}},
	VFMADD132SS: {"vfmadd132ss", []form{{
		vex | p66 | m38, 0x99, 0, "RVM", args{x, x, x | m32},
	}}},
	VFMADD132SD: {"vfmadd132sd", []form{{
		vex | p66 | m38 | w1, 0x99, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFMADD213PS: {"vfmadd213ps", []form{
		{vex660F38, 0xa8, 0, "RVM", args{v, v, vm}},
	}},
	VFMADD213PD: {"vfmadd213pd", []form{{
		vex | p66 | m38 | w1, 0xa8, 0, "RVM", args{v, v, vm},
	}}},
	VFMADD213SS: {"vfmadd213ss", []form{{
		vex | p66 | m38, 0xa9, 0, "RVM", args{x, x, x | m32},
	}}},
	VFMADD213SD: {"vfmadd213sd", []form{{
		vex | p66 | m38 | w1, 0xa9, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFMADD231PS: {"vfmadd231ps", []form{
		{vex660F38, 0xb8, 0, "RVM", args{v, v, vm}},
	}},
	VFMADD231PD: {"vfmadd231pd", []form{{
		vex | p66 | m38 | w1, 0xb8, 0, "RVM", args{v, v, vm},
	}}},
	VFMADD231SS: {"vfmadd231ss", []form{{
		vex | p66 | m38, 0xb9, 0, "RVM", args{x, x, x | m32},
	}}},
	VFMADD231SD: {"vfmadd231sd", []form{{
		vex | p66 | m38 | w1, 0xb9, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFMSUB132PS: {"vfmsub132ps", []form{
		{vex660F38, 0x9a, 0, "RVM", args{v, v, vm}},
	}},
	VFMSUB132PD: {"vfmsub132pd", []form{{
		vex | p66 | m38 | w1, 0x9a, 0, "RVM", args{v, v, vm},
	}}},
	VFMSUB132SS: {"vfmsub132ss", []form{{
		vex | p66 | m38, 0x9b, 0, "RVM", args{x, x, x | m32},
	}}},
	VFMSUB132SD: {"vfmsub132sd", []form{{
		vex | p66 | m38 | w1, 0x9b, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFMSUB213PS: {"vfmsub213ps", []form{
		{vex660F38, 0xaa, 0, "RVM", args{v, v, vm}},
	}},
	VFMSUB213PD: {"vfmsub213pd", []form{{
		vex | p66 | m38 | w1, 0xaa, 0, "RVM", args{v, v, vm},
	}}},
	VFMSUB213SS: {"vfmsub213ss", []form{{
		vex | p66 | m38, 0xab, 0, "RVM", args{x, x, x | m32},
	}}},
	VFMSUB213SD: {"vfmsub213sd", []form{{
		vex | p66 | m38 | w1, 0xab, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFMSUB231PS: {"vfmsub231ps", []form{
		{vex660F38, 0xba, 0, "RVM", args{v, v, vm}},
	}},
	VFMSUB231PD: {"vfmsub231pd", []form{{
		vex | p66 | m38 | w1, 0xba, 0, "RVM", args{v, v, vm},
	}}},
	VFMSUB231SS: {"vfmsub231ss", []form{{
		vex | p66 | m38, 0xbb, 0, "RVM", args{x, x, x | m32},
	}}},
	VFMSUB231SD: {"vfmsub231sd", []form{{
		vex | p66 | m38 | w1, 0xbb, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFNMADD132PS: {"vfnmadd132ps", []form{
		{vex660F38, 0x9c, 0, "RVM", args{v, v, vm}},
	}},
	VFNMADD132PD: {"vfnmadd132pd", []form{{
		vex | p66 | m38 | w1, 0x9c, 0, "RVM", args{v, v, vm},
	}}},
	VFNMADD132SS: {"vfnmadd132ss", []form{{
		vex | p66 | m38, 0x9d, 0, "RVM", args{x, x, x | m32},
	}}},
	VFNMADD132SD: {"vfnmadd132sd", []form{{
		vex | p66 | m38 | w1, 0x9d, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFNMADD213PS: {"vfnmadd213ps", []form{
		{vex660F38, 0xac, 0, "RVM", args{v, v, vm}},
	}},
	VFNMADD213PD: {"vfnmadd213pd", []form{{
		vex | p66 | m38 | w1, 0xac, 0, "RVM", args{v, v, vm},
	}}},
	VFNMADD213SS: {"vfnmadd213ss", []form{{
		vex | p66 | m38, 0xad, 0, "RVM", args{x, x, x | m32},
	}}},
	VFNMADD213SD: {"vfnmadd213sd", []form{{
		vex | p66 | m38 | w1, 0xad, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFNMADD231PS: {"vfnmadd231ps", []form{
		{vex660F38, 0xbc, 0, "RVM", args{v, v, vm}},
	}},
	VFNMADD231PD: {"vfnmadd231pd", []form{{
		vex | p66 | m38 | w1, 0xbc, 0, "RVM", args{v, v, vm},
	}}},
	VFNMADD231SS: {"vfnmadd231ss", []form{{
		vex | p66 | m38, 0xbd, 0, "RVM", args{x, x, x | m32},
	}}},
	VFNMADD231SD: {"vfnmadd231sd", []form{{
		vex | p66 | m38 | w1, 0xbd, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFNMSUB132PS: {"vfnmsub132ps", []form{
		{vex660F38, 0x9e, 0, "RVM", args{v, v, vm}},
	}},
	VFNMSUB132PD: {"vfnmsub132pd", []form{{
		vex | p66 | m38 | w1, 0x9e, 0, "RVM", args{v, v, vm},
	}}},
	VFNMSUB132SS: {"vfnmsub132ss", []form{{
		vex | p66 | m38, 0x9f, 0, "RVM", args{x, x, x | m32},
	}}},
	VFNMSUB132SD: {"vfnmsub132sd", []form{{
		vex | p66 | m38 | w1, 0x9f, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFNMSUB213PS: {"vfnmsub213ps", []form{
		{vex660F38, 0xae, 0, "RVM", args{v, v, vm}},
	}},
	VFNMSUB213PD: {"vfnmsub213pd", []form{{
		vex | p66 | m38 | w1, 0xae, 0, "RVM", args{v, v, vm},
	}}},
	VFNMSUB213SS: {"vfnmsub213ss", []form{{
		vex | p66 | m38, 0xaf, 0, "RVM", args{x, x, x | m32},
	}}},
	VFNMSUB213SD: {"vfnmsub213sd", []form{{
		vex | p66 | m38 | w1, 0xaf, 0, "RVM",
		args{x, x, x | m64},
	}}},
	VFNMSUB231PS: {"vfnmsub231ps", []form{
		{vex660F38, 0xbe, 0, "RVM", args{v, v, vm}},
	}},
	VFNMSUB231PD: {"vfnmsub231pd", []form{{
		vex | p66 | m38 | w1, 0xbe, 0, "RVM", args{v, v, vm},
	}}},
	VFNMSUB231SS: {"vfnmsub231ss", []form{{
		vex | p66 | m38, 0xbf, 0, "RVM", args{x, x, x | m32},
	}}},
	VFNMSUB231SD: {"vfnmsub231sd", []form{{
		vex | p66 | m38 | w1, 0xbf, 0, "RVM",
		args{x, x, x | m64},
	}}},

	// Bits, comparisons, selection.
	VANDPS: {"vandps", []form{
		{vex0F, 0x54, 0, "RVM", args{v, v, vm}},
	}},
	VANDPD: {"vandpd", []form{
		{vex660F, 0x54, 0, "RVM", args{v, v, vm}},
	}},
	VANDNPS: {"vandnps", []form{
		{vex0F, 0x55, 0, "RVM", args{v, v, vm}},
	}},
	VANDNPD: {"vandnpd", []form{
		{vex660F, 0x55, 0, "RVM", args{v, v, vm}},
	}},
	VORPS: {"vorps", []form{
		{vex0F, 0x56, 0, "RVM", args{v, v, vm}},
	}},
	VORPD: {"vorpd", []form{
		{vex660F, 0x56, 0, "RVM", args{v, v, vm}},
	}},
	VXORPS: {"vxorps", []form{
		{vex0F, 0x57, 0, "RVM", args{v, v, vm}},
	}},
	VXORPD: {"vxorpd", []form{
		{vex660F, 0x57, 0, "RVM", args{v, v, vm}},
	}},
	VCMPPS: {"vcmpps", []form{
		{vex0F, 0xc2, 0, "RVMI", args{v, v, vm, u8}},
	}},
	VCMPPD: {"vcmppd", []form{{
		vex | p66 | m0F, 0xc2, 0, "RVMI", args{v, v, vm, u8},
	}}},
	VCMPSS: {"vcmpss", []form{{
		vex | pF3 | m0F, 0xc2, 0, "RVMI",
		args{x, x, x | m32, u8},
	}}},
	VCMPSD: {"vcmpsd", []form{{
		vex | pF2 | m0F, 0xc2, 0, "RVMI",
		args{x, x, x | m64, u8},
	}}},
	VBLENDVPS: {"vblendvps", []form{{
		vex | p66 | m3A, 0x4a, 0, "RVMS", args{v, v, vm, v},
	}}},
	VBLENDVPD: {"vblendvpd", []form{{
		vex | p66 | m3A, 0x4b, 0, "RVMS", args{v, v, vm, v},
	}}},
	VPBLENDVB: {"vpblendvb", []form{{
		vex | p66 | m3A, 0x4c, 0, "RVMS", args{v, v, vm, v},
	}}},
	VBLENDPS: {"vblendps", []form{{
		vex | p66 | m3A, 0x0c, 0, "RVMI", args{v, v, vm, u8},
	}}},
	VBLENDPD: {"vblendpd", []form{{
		vex | p66 | m3A, 0x0d, 0, "RVMI", args{v, v, vm, u8},
	}}},
	VPBLENDD: {"vpblendd", []form{{
		vex | p66 | m3A, 0x02, 0, "RVMI", args{v, v, vm, u8},
	}}},
	VPBLENDW: {"vpblendw", []form{{
		vex | p66 | m3A, 0x0e, 0, "RVMI", args{v, v, vm, u8},
	}}},
	VMOVMSKPS: {"vmovmskps", []form{{
		vex | m0F, 0x50, 0, "RM", args{r32, anyXY},
	}}},
	VMOVMSKPD: {"vmovmskpd", []form{
		{vex660F, 0x50, 0, "RM", args{r32, anyXY}},
	}},
	VPMOVMSKB: {"vpmovmskb", []form{
		{vex660F, 0xd7, 0, "RM", args{r32, anyXY}},
	}},
	VPTEST: {"vptest", []form{
		{vex660F38, 0x17, 0, "RM", args{v, vm}},
	}},
	VTESTPS: {"vtestps", []form{
		{vex660F38, 0x0e, 0, "RM", args{v, vm}},
	}},

	// Conversions.
	VCVTDQ2PS: {"vcvtdq2ps", []form{{
		vex | m0F, 0x5b, 0, "RM", args{v, vm},
	}}},
	VCVTPS2DQ: {"vcvtps2dq", []form{
		{vex660F, 0x5b, 0, "RM", args{v, vm}},
	}},
	VCVTTPS2DQ: {"vcvttps2dq", []form{
		{vexF30F, 0x5b, 0, "RM", args{v, vm}},
	}},
	VCVTPS2PD: {"vcvtps2pd", []form{
		{vex0F, 0x5a, 0, "RM", args{anyXY, x | mh}},
	}},
	VCVTPD2PS: {"vcvtpd2ps", []form{
		{vex660F, 0x5a, 0, "RM", args{x, anyXY}},
	}},
	VCVTDQ2PD: {"vcvtdq2pd", []form{
		{vexF30F, 0xe6, 0, "RM", args{anyXY, x | mh}},
	}},
	VCVTPD2DQ: {"vcvtpd2dq", []form{
		{vexF20F, 0xe6, 0, "RM", args{x, anyXY}},
	}},
	VCVTTPD2DQ: {"vcvttpd2dq", []form{
		{vex660F, 0xe6, 0, "RM", args{x, anyXY}},
	}},
	VCVTSS2SD: {"vcvtss2sd", []form{{
		vex | pF3 | m0F, 0x5a, 0, "RVM", args{x, x, x | m32},
	}}},
	VCVTSD2SS: {"vcvtsd2ss", []form{{
		vex | pF2 | m0F, 0x5a, 0, "RVM", args{x, x, x | m64},
	}}},
	VCVTSI2SS: {"vcvtsi2ss", []form{
		{vexF30F, 0x2a, 0, "RVM", args{x, x, r32}},
		{vex | pF3 | m0F | w1, 0x2a, 0, "RVM", args{x, x, r64}},
	}},
	VCVTSI2SD: {"vcvtsi2sd", []form{
		{vexF20F, 0x2a, 0, "RVM", args{x, x, r32}},
		{vex | pF2 | m0F | w1, 0x2a, 0, "RVM", args{x, x, r64}},
	}},
	VCVTSS2SI: {"vcvtss2si", []form{
		{vexF30F, 0x2d, 0, "RM", args{r32, x | m32}},
		{vex | pF3 | m0F | w1, 0x2d, 0, "RM", args{r64, x | m32}},
	}},
	VCVTTSS2SI: {"vcvttss2si", []form{
		{vexF30F, 0x2c, 0, "RM", args{r32, x | m32}},
		{vex | pF3 | m0F | w1, 0x2c, 0, "RM", args{r64, x | m32}},
	}},
	VCVTSD2SI: {"vcvtsd2si", []form{
		{vexF20F, 0x2d, 0, "RM", args{r32, x | m64}},
		{vex | pF2 | m0F | w1, 0x2d, 0, "RM", args{r64, x | m64}},
	}},
	VCVTTSD2SI: {"vcvttsd2si", []form{
		{vexF20F, 0x2c, 0, "RM", args{r32, x | m64}},
		{vex | pF2 | m0F | w1, 0x2c, 0, "RM", args{r64, x | m64}},
	}},
	VCVTPH2PS: {"vcvtph2ps", []form{
		{vex660F38, 0x13, 0, "RM", args{anyXY, x | mh}},
	}},
	VCVTPS2PH: {"vcvtps2ph", []form{{
		vex | p66 | m3A, 0x1d, 0, "MRI", args{x | mh, anyXY, u8},
	}}},

	// Integer vectors.
	VPADDB: {"vpaddb", []form{
		{vex660F, 0xfc, 0, "RVM", args{v, v, vm}},
	}},
	VPADDW: {"vpaddw", []form{
		{vex660F, 0xfd, 0, "RVM", args{v, v, vm}},
	}},
	VPADDD: {"vpaddd", []form{
		{vex660F, 0xfe, 0, "RVM", args{v, v, vm}},
	}},
	VPADDQ: {"vpaddq", []form{
		{vex660F, 0xd4, 0, "RVM", args{v, v, vm}},
	}},
	VPSUBB: {"vpsubb", []form{
		{vex660F, 0xf8, 0, "RVM", args{v, v, vm}},
	}},
	VPSUBW: {"vpsubw", []form{
		{vex660F, 0xf9, 0, "RVM", args{v, v, vm}},
	}},
	VPSUBD: {"vpsubd", []form{
		{vex660F, 0xfa, 0, "RVM", args{v, v, vm}},
	}},
	VPSUBQ: {"vpsubq", []form{
		{vex660F, 0xfb, 0, "RVM", args{v, v, vm}},
	}},
	VPMULLW: {"vpmullw", []form{
		{vex660F, 0xd5, 0, "RVM", args{v, v, vm}},
	}},
	VPMULHW: {"vpmulhw", []form{
		{vex660F, 0xe5, 0, "RVM", args{v, v, vm}},
	}},
	VPMULUDQ: {"vpmuludq", []form{
		{vex660F, 0xf4, 0, "RVM", args{v, v, vm}},
	}},
	VPMADDWD: {"vpmaddwd", []form{
		{vex660F, 0xf5, 0, "RVM", args{v, v, vm}},
	}},
	VPAND: {"vpand", []form{
		{vex660F, 0xdb, 0, "RVM", args{v, v, vm}},
	}},
	VPANDN: {"vpandn", []form{
		{vex660F, 0xdf, 0, "RVM", args{v, v, vm}},
	}},
	VPOR: {"vpor", []form{
		{vex660F, 0xeb, 0, "RVM", args{v, v, vm}},
	}},
	VPXOR: {"vpxor", []form{
		{vex660F, 0xef, 0, "RVM", args{v, v, vm}},
	}},
	VPCMPEQB: {"vpcmpeqb", []form{
		{vex660F, 0x74, 0, "RVM", args{v, v, vm}},
	}},
	VPCMPEQW: {"vpcmpeqw", []form{
		{vex660F, 0x75, 0, "RVM", args{v, v, vm}},
	}},
	VPCMPEQD: {"vpcmpeqd", []form{
		{vex660F, 0x76, 0, "RVM", args{v, v, vm}},
	}},
	VPCMPGTB: {"vpcmpgtb", []form{
		{vex660F, 0x64, 0, "RVM", args{v, v, vm}},
	}},
	VPCMPGTW: {"vpcmpgtw", []form{
		{vex660F, 0x65, 0, "RVM", args{v, v, vm}},
	}},
	VPCMPGTD: {"vpcmpgtd", []form{
		{vex660F, 0x66, 0, "RVM", args{v, v, vm}},
	}},
	VPACKSSDW: {"vpackssdw", []form{
		{vex660F, 0x6b, 0, "RVM", args{v, v, vm}},
	}},
	VPACKSSWB: {"vpacksswb", []form{
		{vex660F, 0x63, 0, "RVM", args{v, v, vm}},
	}},
	VPACKUSWB: {"vpackuswb", []form{
		{vex660F, 0x67, 0, "RVM", args{v, v, vm}},
	}},
	VPUNPCKLBW: {"vpunpcklbw", []form{
		{vex660F, 0x60, 0, "RVM", args{v, v, vm}},
	}},
	VPUNPCKLWD: {"vpunpcklwd", []form{
		{vex660F, 0x61, 0, "RVM", args{v, v, vm}},
	}},
	VPUNPCKLDQ: {"vpunpckldq", []form{
		{vex660F, 0x62, 0, "RVM", args{v, v, vm}},
	}},
	VPUNPCKLQDQ: {"vpunpcklqdq", []form{
		{vex660F, 0x6c, 0, "RVM", args{v, v, vm}},
	}},
	VPUNPCKHBW: {"vpunpckhbw", []form{
		{vex660F, 0x68, 0, "RVM", args{v, v, vm}},
	}},
	VPUNPCKHWD: {"vpunpckhwd", []form{
		{vex660F, 0x69, 0, "RVM", args{v, v, vm}},
	}},
	VPUNPCKHDQ: {"vpunpckhdq", []form{
		{vex660F, 0x6a, 0, "RVM", args{v, v, vm}},
	}},
	VPUNPCKHQDQ: {"vpunpckhqdq", []form{
		{vex660F, 0x6d, 0, "RVM", args{v, v, vm}},
	}},
	VPMULLD: {"vpmulld", []form{
		{vex660F38, 0x40, 0, "RVM", args{v, v, vm}},
	}},
	VPMULDQ: {"vpmuldq", []form{
		{vex660F38, 0x28, 0, "RVM", args{v, v, vm}},
	}},
	VPMADDUBSW: {"vpmaddubsw", []form{
		{vex660F38, 0x04, 0, "RVM", args{v, v, vm}},
	}},
	VPACKUSDW: {"vpackusdw", []form{
		{vex660F38, 0x2b, 0, "RVM", args{v, v, vm}},
	}},
	VPADDUSB: {"vpaddusb", []form{
		{vex660F, 0xdc, 0, "RVM", args{v, v, vm}},
	}},
	VPMINSB: {"vpminsb", []form{
		{vex660F38, 0x38, 0, "RVM", args{v, v, vm}},
	}},
	VPMAXSB: {"vpmaxsb", []form{
		{vex660F38, 0x3c, 0, "RVM", args{v, v, vm}},
	}},
	VPMINUB: {"vpminub", []form{
		{vex660F, 0xda, 0, "RVM", args{v, v, vm}},
	}},
	VPMAXUB: {"vpmaxub", []form{
		{vex660F, 0xde, 0, "RVM", args{v, v, vm}},
	}},
	VPABSB: {"vpabsb", []form{
		{vex660F38, 0x1c, 0, "RM", args{v, vm}},
	}},
	VPCMPEQQ: {"vpcmpeqq", []form{
		{vex660F38, 0x29, 0, "RVM", args{v, v, vm}},
	}},
	VPCMPGTQ: {"vpcmpgtq", []form{
		{vex660F38, 0x37, 0, "RVM", args{v, v, vm}},
	}},
	VPMINSD: {"vpminsd", []form{
		{vex660F38, 0x39, 0, "RVM", args{v, v, vm}},
	}},
	VPMAXSD: {"vpmaxsd", []form{
		{vex660F38, 0x3d, 0, "RVM", args{v, v, vm}},
	}},
	VPMINUD: {"vpminud", []form{
		{vex660F38, 0x3b, 0, "RVM", args{v, v, vm}},
	}},
	VPMAXUD: {"vpmaxud", []form{
		{vex660F38, 0x3f, 0, "RVM", args{v, v, vm}},
	}},
	VPSIGND: {"vpsignd", []form{
		{vex660F38, 0x0a, 0, "RVM", args{v, v, vm}},
	}},
	VPSHUFB: {"vpshufb", []form{
		{vex660F38, 0x00, 0, "RVM", args{v, v, vm}},
	}},
	VPSLLVD: {"vpsllvd", []form{
		{vex660F38, 0x47, 0, "RVM", args{v, v, vm}},
	}},
	VPSRLVD: {"vpsrlvd", []form{
		{vex660F38, 0x45, 0, "RVM", args{v, v, vm}},
	}},
	VPSRAVD: {"vpsravd", []form{
		{vex660F38, 0x46, 0, "RVM", args{v, v, vm}},
	}},
	VPSLLVQ: {"vpsllvq", []form{{
		vex | p66 | m38 | w1, 0x47, 0, "RVM", args{v, v, vm},
	}}},
	VPSRLVQ: {"vpsrlvq", []form{{
		vex | p66 | m38 | w1, 0x45, 0, "RVM", args{v, v, vm},
	}}},
	VPABSD: {"vpabsd", []form{
		{vex660F38, 0x1e, 0, "RM", args{v, vm}},
	}},
	VPSLLW: {"vpsllw", []form{
		{vex660F, 0x71, 6, "VMI", args{v, v, u8}},
		{vex660F, 0xf1, 0, "RVM", args{v, v, x | m128}},
	}},
	VPSLLD: {"vpslld", []form{
		{vex660F, 0x72, 6, "VMI", args{v, v, u8}},
		{vex660F, 0xf2, 0, "RVM", args{v, v, x | m128}},
	}},
	VPSLLQ: {"vpsllq", []form{
		{vex660F, 0x73, 6, "VMI", args{v, v, u8}},
		{vex660F, 0xf3, 0, "RVM", args{v, v, x | m128}},
	}},
	VPSRLW: {"vpsrlw", []form{
		{vex660F, 0x71, 2, "VMI", args{v, v, u8}},
		{vex660F, 0xd1, 0, "RVM", args{v, v, x | m128}},
	}},
	VPSRLD: {"vpsrld", []form{
		{vex660F, 0x72, 2, "VMI", args{v, v, u8}},
		{vex660F, 0xd2, 0, "RVM", args{v, v, x | m128}},
	}},
	VPSRLQ: {"vpsrlq", []form{
		{vex660F, 0x73, 2, "VMI", args{v, v, u8}},
		{vex660F, 0xd3, 0, "RVM", args{v, v, x | m128}},
	}},
	VPSRAW: {"vpsraw", []form{
		{vex660F, 0x71, 4, "VMI", args{v, v, u8}},
		{vex660F, 0xe1, 0, "RVM", args{v, v, x | m128}},
	}},
	VPSRAD: {"vpsrad", []form{
		{vex660F, 0x72, 4, "VMI", args{v, v, u8}},
		{vex660F, 0xe2, 0, "RVM", args{v, v, x | m128}},
	}},
	VPSLLDQ: {"vpslldq", []form{
		{vex660F, 0x73, 7, "VMI", args{v, v, u8}},
	}},
	VPSRLDQ: {"vpsrldq", []form{
		{vex660F, 0x73, 3, "VMI", args{v, v, u8}},
	}},
	VPMOVSXBW: {"vpmovsxbw", []form{
		{vex660F38, 0x20, 0, "RM", args{anyXY, x | mh}},
	}},
	VPMOVSXBD: {"vpmovsxbd", []form{
		{vex660F38, 0x21, 0, "RM", args{anyXY, x | mq}},
	}},
	VPMOVSXWD: {"vpmovsxwd", []form{
		{vex660F38, 0x23, 0, "RM", args{anyXY, x | mh}},
	}},
	VPMOVSXWQ: {"vpmovsxwq", []form{
		{vex660F38, 0x24, 0, "RM", args{anyXY, x | mq}},
	}},
	VPMOVSXDQ: {"vpmovsxdq", []form{
		{vex660F38, 0x25, 0, "RM", args{anyXY, x | mh}},
	}},
	VPMOVZXBW: {"vpmovzxbw", []form{
		{vex660F38, 0x30, 0, "RM", args{anyXY, x | mh}},
	}},
	VPMOVZXBD: {"vpmovzxbd", []form{
		{vex660F38, 0x31, 0, "RM", args{anyXY, x | mq}},
	}},
	VPMOVZXWD: {"vpmovzxwd", []form{
		{vex660F38, 0x33, 0, "RM", args{anyXY, x | mh}},
	}},
	VPMOVZXWQ: {"vpmovzxwq", []form{
		{vex660F38, 0x34, 0, "RM", args{anyXY, x | mq}},
	}},
	VPMOVZXDQ: {"vpmovzxdq", []form{
		{vex660F38, 0x35, 0, "RM", args{anyXY, x | mh}},
	}},

	// Shuffles within and across the halves.
	VUNPCKLPS: {"vunpcklps", []form{
		{vex0F, 0x14, 0, "RVM", args{v, v, vm}},
	}},
	VUNPCKHPS: {"vunpckhps", []form{
		{vex0F, 0x15, 0, "RVM", args{v, v, vm}},
	}},
	VUNPCKLPD: {"vunpcklpd", []form{
		{vex660F, 0x14, 0, "RVM", args{v, v, vm}},
	}},
	VUNPCKHPD: {"vunpckhpd", []form{
		{vex660F, 0x15, 0, "RVM", args{v, v, vm}},
	}},
	VSHUFPS: {"vshufps", []form{
		{vex0F, 0xc6, 0, "RVMI", args{v, v, vm, u8}},
	}},
	VSHUFPD: {"vshufpd", []form{{
		vex | p66 | m0F, 0xc6, 0, "RVMI", args{v, v, vm, u8},
	}}},
	VPSHUFD: {"vpshufd", []form{
		{vex660F, 0x70, 0, "RMI", args{v, vm, u8}},
	}},
	VPALIGNR: {"vpalignr", []form{{
		vex | p66 | m3A, 0x0f, 0, "RVMI", args{v, v, vm, u8},
	}}},
	VPERMILPS: {"vpermilps", []form{
		{vex660F3A, 0x04, 0, "RMI", args{v, vm, u8}},
		{vex660F38, 0x0c, 0, "RVM", args{v, v, vm}},
	}},
	VPERMILPD: {"vpermilpd", []form{
		{vex660F3A, 0x05, 0, "RMI", args{v, vm, u8}},
	}},
	VMOVSHDUP: {"vmovshdup", []form{
		{vexF30F, 0x16, 0, "RM", args{v, vm}},
	}},
	VMOVSLDUP: {"vmovsldup", []form{
		{vexF30F, 0x12, 0, "RM", args{v, vm}},
	}},
	VMOVHLPS: {"vmovhlps", []form{
		{vex0F, 0x12, 0, "RVM", args{x, x, x}},
	}},
	VMOVLHPS: {"vmovlhps", []form{
		{vex0F, 0x16, 0, "RVM", args{x, x, x}},
	}},
	VPERM2F128: {"vperm2f128", []form{{
		vex | p66 | m3A, 0x06, 0, "RVMI",
		args{y, y, y | m256, u8},
	}}},
	VPERM2I128: {"vperm2i128", []form{{
		vex | p66 | m3A, 0x46, 0, "RVMI",
		args{y, y, y | m256, u8},
	}}},
	VPERMQ: {"vpermq", []form{{
		vex | p66 | m3A | w1, 0x00, 0, "RMI",
		args{y, y | m256, u8},
	}}},
	VPERMPD: {"vpermpd", []form{{
		vex | p66 | m3A | w1, 0x01, 0, "RMI",
		args{y, y | m256, u8},
	}}},
	VPERMPS: {"vpermps", []form{{
		vex | p66 | m38, 0x16, 0, "RVM", args{y, y, y | m256},
	}}},
	VPERMD: {"vpermd", []form{{
		vex | p66 | m38, 0x36, 0, "RVM", args{y, y, y | m256},
	}}},
	VSHUFF32X4: {"vshuff32x4", []form{{
		evex | p66 | m3A, 0x23, 0, "RVMI",
		args{z, z, z | mv, u8},
	}}},
	VINSERTF64X4: {"vinsertf64x4", []form{{
		evex | p66 | m3A | w1, 0x1a, 0, "RVMI",
		args{z, z, y | m256, u8},
	}}},
	VEXTRACTF64X4: {"vextractf64x4", []form{{
		evex | p66 | m3A | w1, 0x1b, 0, "MRI", args{y | m256, z, u8},
	}}},
	VPMOVDW: {"vpmovdw", []form{{
		evex | pF3 | m38, 0x33, 0, "MR", args{y | m256, z},
	}}},
	VCVTNEPS2BF16: {"vcvtneps2bf16", []form{{
		evex | pF3 | m38, 0x72, 0, "RM", args{y, z},
	}}},
	VPMOVM2D: {"vpmovm2d", []form{{
		evex | pF3 | m38, 0x38, 0, "RM", args{z, k},
	}}},
	VPMOVD2M: {"vpmovd2m", []form{{
		evex | pF3 | m38, 0x39, 0, "RM", args{k, z},
	}}},
	VBLENDMPS: {"vblendmps", []form{{
		evex660F38, 0x65, 0, "RKVM", args{z, k, z, z | mv},
	}}},
	VBLENDMPD: {"vblendmpd", []form{{
		evex660F38 | w1, 0x65, 0, "RKVM", args{z, k, z, z | mv},
	}}},
	VPMOVM2B: {"vpmovm2b", []form{{
		evex | pF3 | m38, 0x28, 0, "RM", args{z, k},
	}}},
	VPMOVM2Q: {"vpmovm2q", []form{{
		evex | pF3 | m38 | w1, 0x38, 0, "RM", args{z, k},
	}}},
	VPMOVQ2M: {"vpmovq2m", []form{{
		evex | pF3 | m38 | w1, 0x39, 0, "RM", args{k, z},
	}}},
	VPMOVDB: {"vpmovdb", []form{{
		evex | pF3 | m38, 0x31, 0, "MR", args{x | m128, z},
	}}},
	VPMOVQD: {"vpmovqd", []form{{
		evex | pF3 | m38, 0x35, 0, "MR", args{y | m256, z},
	}}},
	VCVTQQ2PD: {"vcvtqq2pd", []form{{
		evex | pF3 | m0F | w1, 0xe6, 0, "RM", args{z, z | mv},
	}}},
	VCVTQQ2PS: {"vcvtqq2ps", []form{{
		evex | m0F | w1, 0x5b, 0, "RM", args{y, z},
	}}},
	VPMINSQ: {"vpminsq", []form{{
		evex660F38 | w1, 0x39, 0, "RVM", args{z, z, z | mv},
	}}},
	VPMAXSQ: {"vpmaxsq", []form{{
		evex660F38 | w1, 0x3d, 0, "RVM", args{z, z, z | mv},
	}}},
	VPMINUQ: {"vpminuq", []form{{
		evex660F38 | w1, 0x3b, 0, "RVM", args{z, z, z | mv},
	}}},
	VPMAXUQ: {"vpmaxuq", []form{{
		evex660F38 | w1, 0x3f, 0, "RVM", args{z, z, z | mv},
	}}},
	VEXTRACTF128: {"vextractf128", []form{{
		vex | p66 | m3A, 0x19, 0, "MRI", args{x | m128, y, u8},
	}}},
	VEXTRACTI128: {"vextracti128", []form{{
		vex | p66 | m3A, 0x39, 0, "MRI", args{x | m128, y, u8},
	}}},
	VINSERTF128: {"vinsertf128", []form{{
		vex | p66 | m3A, 0x18, 0, "RVMI",
		args{y, y, x | m128, u8},
	}}},
	VINSERTI128: {"vinserti128", []form{{
		vex | p66 | m3A, 0x38, 0, "RVMI",
		args{y, y, x | m128, u8},
	}}},
	VPEXTRB: {"vpextrb", []form{{
		vex | p66 | m3A, 0x14, 0, "MRI", args{r32 | m8, x, u8},
	}}},
	VPEXTRW: {"vpextrw", []form{{
		vex | p66 | m3A, 0x15, 0, "MRI", args{r32 | m16, x, u8},
	}}},
	VPEXTRD: {"vpextrd", []form{{
		vex | p66 | m3A, 0x16, 0, "MRI", args{r32 | m32, x, u8},
	}}},
	VPEXTRQ: {"vpextrq", []form{{
		vex | p66 | m3A | w1, 0x16, 0, "MRI",
		args{r64 | m64, x, u8},
	}}},
	VPINSRB: {"vpinsrb", []form{{
		vex | p66 | m3A, 0x20, 0, "RVMI",
		args{x, x, r32 | m8, u8},
	}}},
	VPINSRW: {"vpinsrw", []form{{
		vex | p66 | m0F, 0xc4, 0, "RVMI",
		args{x, x, r32 | m16, u8},
	}}},
	VPINSRD: {"vpinsrd", []form{{
		vex | p66 | m3A, 0x22, 0, "RVMI",
		args{x, x, r32 | m32, u8},
	}}},
	VPINSRQ: {"vpinsrq", []form{{
		vex | p66 | m3A | w1, 0x22, 0, "RVMI",
		args{x, x, r64 | m64, u8},
	}}},
	VZEROUPPER: {"vzeroupper", []form{
		{vex0F, 0x77, 0, "", args{}},
	}},

	// Integers: loop counters and addresses.
	MOV: {"mov", []form{
		{w1, 0x8b, 0, "RM", args{r64, r64 | m64}},
		{0, 0x8b, 0, "RM", args{r32, r32 | m32}},
		{0, 0x8a, 0, "RM", args{r8, r8 | m8}},
		{w1, 0x89, 0, "MR", args{m64, r64}},
		{0, 0x89, 0, "MR", args{m32, r32}},
		{0, 0x88, 0, "MR", args{m8, r8}},
		{w1, 0xc7, 0, "MI", args{r64, i32}},
		{0, 0xb8, 0, "OI", args{r32, u32}},
		{w1, 0xb8, 0, "OI", args{r64, i64}},
	}},
	LEA: {"lea", []form{
		{w1, 0x8d, 0, "RM", args{r64, mem}},
	}},
	MOVZXB: {"movzx", []form{{
		m0F, 0xb6, 0, "RM", args{r32, r8 | m8},
	}}},
	MOVZXW: {"movzx", []form{
		{m0F, 0xb7, 0, "RM", args{r32, m16}},
	}},
	MOVSXB: {"movsx", []form{
		{m0F | w1, 0xbe, 0, "RM", args{r64, r8 | m8}},
	}},
	MOVSXD: {"movsxd", []form{{
		w1, 0x63, 0, "RM", args{r64, r32 | m32},
	}}},
	ADD: {"add", []form{
		{w1, 0x03, 0, "RM", args{r64, r64 | m64}},
		{0, 0x03, 0, "RM", args{r32, r32 | m32}},
		{w1, 0x01, 0, "MR", args{m64, r64}},
		{0, 0x01, 0, "MR", args{m32, r32}},
		{w1, 0x83, 0, "MI", args{r64, i8}},
		{0, 0x83, 0, "MI", args{r32, i8}},
		{w1, 0x81, 0, "MI", args{r64, i32}},
		{0, 0x81, 0, "MI", args{r32, u32}},
	}},
	OR: {"or", []form{
		{w1, 0x0b, 0, "RM", args{r64, r64 | m64}},
		{0, 0x0b, 0, "RM", args{r32, r32 | m32}},
		{w1, 0x09, 0, "MR", args{m64, r64}},
		{0, 0x09, 0, "MR", args{m32, r32}},
		{w1, 0x83, 1, "MI", args{r64, i8}},
		{0, 0x83, 1, "MI", args{r32, i8}},
		{w1, 0x81, 1, "MI", args{r64, i32}},
		{0, 0x81, 1, "MI", args{r32, u32}},
	}},
	AND: {"and", []form{
		{w1, 0x23, 0, "RM", args{r64, r64 | m64}},
		{0, 0x23, 0, "RM", args{r32, r32 | m32}},
		{w1, 0x21, 0, "MR", args{m64, r64}},
		{0, 0x21, 0, "MR", args{m32, r32}},
		{w1, 0x83, 4, "MI", args{r64, i8}},
		{0, 0x83, 4, "MI", args{r32, i8}},
		{w1, 0x81, 4, "MI", args{r64, i32}},
		{0, 0x81, 4, "MI", args{r32, u32}},
	}},
	SUB: {"sub", []form{
		{w1, 0x2b, 0, "RM", args{r64, r64 | m64}},
		{0, 0x2b, 0, "RM", args{r32, r32 | m32}},
		{w1, 0x29, 0, "MR", args{m64, r64}},
		{0, 0x29, 0, "MR", args{m32, r32}},
		{w1, 0x83, 5, "MI", args{r64, i8}},
		{0, 0x83, 5, "MI", args{r32, i8}},
		{w1, 0x81, 5, "MI", args{r64, i32}},
		{0, 0x81, 5, "MI", args{r32, u32}},
	}},
	XOR: {"xor", []form{
		{w1, 0x33, 0, "RM", args{r64, r64 | m64}},
		{0, 0x33, 0, "RM", args{r32, r32 | m32}},
		{w1, 0x31, 0, "MR", args{m64, r64}},
		{0, 0x31, 0, "MR", args{m32, r32}},
		{w1, 0x83, 6, "MI", args{r64, i8}},
		{0, 0x83, 6, "MI", args{r32, i8}},
		{w1, 0x81, 6, "MI", args{r64, i32}},
		{0, 0x81, 6, "MI", args{r32, u32}},
	}},
	CMP: {"cmp", []form{
		{w1, 0x3b, 0, "RM", args{r64, r64 | m64}},
		{0, 0x3b, 0, "RM", args{r32, r32 | m32}},
		{w1, 0x39, 0, "MR", args{m64, r64}},
		{0, 0x39, 0, "MR", args{m32, r32}},
		{w1, 0x83, 7, "MI", args{r64, i8}},
		{0, 0x83, 7, "MI", args{r32, i8}},
		{w1, 0x81, 7, "MI", args{r64, i32}},
		{0, 0x81, 7, "MI", args{r32, u32}},
	}},
	TEST: {"test", []form{
		{w1, 0x85, 0, "MR", args{r64, r64}},
		{0, 0x85, 0, "MR", args{r32, r32}},
		{w1, 0xf7, 0, "MI", args{r64, i32}},
		{0, 0xf7, 0, "MI", args{r32, u32}},
	}},
	IMUL: {"imul", []form{
		{m0F | w1, 0xaf, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0xaf, 0, "RM", args{r32, r32 | m32}},
		{w1, 0x6b, 0, "RMI", args{r64, r64 | m64, i8}},
		{0, 0x6b, 0, "RMI", args{r32, r32 | m32, i8}},
		{w1, 0x69, 0, "RMI", args{r64, r64 | m64, i32}},
		{0, 0x69, 0, "RMI", args{r32, r32 | m32, u32}},
	}},
	SHL: {"shl", []form{
		{w1, 0xc1, 4, "MI", args{r64, u8}},
		{0, 0xc1, 4, "MI", args{r32, u8}},
	}},
	SHR: {"shr", []form{
		{w1, 0xc1, 5, "MI", args{r64, u8}},
		{0, 0xc1, 5, "MI", args{r32, u8}},
	}},
	SAR: {"sar", []form{
		{w1, 0xc1, 7, "MI", args{r64, u8}},
		{0, 0xc1, 7, "MI", args{r32, u8}},
	}},
	INC: {"inc", []form{
		{w1, 0xff, 0, "M", args{r64}},
		{0, 0xff, 0, "M", args{r32}},
	}},
	DEC: {"dec", []form{
		{w1, 0xff, 1, "M", args{r64}},
		{0, 0xff, 1, "M", args{r32}},
	}},
	NOT: {"not", []form{
		{w1, 0xf7, 2, "M", args{r64}},
		{0, 0xf7, 2, "M", args{r32}},
	}},
	NEG: {"neg", []form{
		{w1, 0xf7, 3, "M", args{r64}},
		{0, 0xf7, 3, "M", args{r32}},
	}},
	CMOVB: {"cmovb", []form{
		{m0F | w1, 0x42, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x42, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVAE: {"cmovae", []form{
		{m0F | w1, 0x43, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x43, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVE: {"cmove", []form{
		{m0F | w1, 0x44, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x44, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVNE: {"cmovne", []form{
		{m0F | w1, 0x45, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x45, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVBE: {"cmovbe", []form{
		{m0F | w1, 0x46, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x46, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVA: {"cmova", []form{
		{m0F | w1, 0x47, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x47, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVS: {"cmovs", []form{
		{m0F | w1, 0x48, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x48, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVNS: {"cmovns", []form{
		{m0F | w1, 0x49, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x49, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVL: {"cmovl", []form{
		{m0F | w1, 0x4c, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x4c, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVGE: {"cmovge", []form{
		{m0F | w1, 0x4d, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x4d, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVLE: {"cmovle", []form{
		{m0F | w1, 0x4e, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x4e, 0, "RM", args{r32, r32 | m32}},
	}},
	CMOVG: {"cmovg", []form{
		{m0F | w1, 0x4f, 0, "RM", args{r64, r64 | m64}},
		{m0F, 0x4f, 0, "RM", args{r32, r32 | m32}},
	}},
	PREFETCHNTA: {"prefetchnta", []form{
		{m0F, 0x18, 0, "M", args{mem}},
	}},
	PREFETCHT0: {"prefetcht0", []form{
		{m0F, 0x18, 1, "M", args{mem}},
	}},
	PREFETCHT1: {"prefetcht1", []form{
		{m0F, 0x18, 2, "M", args{mem}},
	}},
	PREFETCHT2: {"prefetcht2", []form{
		{m0F, 0x18, 3, "M", args{mem}},
	}},
	PREFETCHW: {"prefetchw", []form{
		{m0F, 0x0d, 1, "M", args{mem}},
	}},

	// Control.
	JMP: {"jmp", []form{
		{0, 0xeb, 0, "J", args{rel}},
	}},
	JO: {"jo", []form{
		{0, 0x70, 0, "J", args{rel}},
	}},
	JNO: {"jno", []form{
		{0, 0x71, 0, "J", args{rel}},
	}},
	JB: {"jb", []form{
		{0, 0x72, 0, "J", args{rel}},
	}},
	JAE: {"jae", []form{
		{0, 0x73, 0, "J", args{rel}},
	}},
	JE: {"je", []form{
		{0, 0x74, 0, "J", args{rel}},
	}},
	JNE: {"jne", []form{
		{0, 0x75, 0, "J", args{rel}},
	}},
	JBE: {"jbe", []form{
		{0, 0x76, 0, "J", args{rel}},
	}},
	JA: {"ja", []form{
		{0, 0x77, 0, "J", args{rel}},
	}},
	JS: {"js", []form{
		{0, 0x78, 0, "J", args{rel}},
	}},
	JNS: {"jns", []form{
		{0, 0x79, 0, "J", args{rel}},
	}},
	JP: {"jp", []form{
		{0, 0x7a, 0, "J", args{rel}},
	}},
	JNP: {"jnp", []form{
		{0, 0x7b, 0, "J", args{rel}},
	}},
	JL: {"jl", []form{
		{0, 0x7c, 0, "J", args{rel}},
	}},
	JGE: {"jge", []form{
		{0, 0x7d, 0, "J", args{rel}},
	}},
	JLE: {"jle", []form{
		{0, 0x7e, 0, "J", args{rel}},
	}},
	JG: {"jg", []form{
		{0, 0x7f, 0, "J", args{rel}},
	}},
	RET:   {"ret", []form{{0, 0xc3, 0, "", args{}}}},
	INT3:  {"int3", []form{{0, 0xcc, 0, "", args{}}}},
	PAUSE: {"pause", []form{{pF3, 0x90, 0, "", args{}}}},
	RDTSC: {"rdtsc", []form{{m0F, 0x31, 0, "", args{}}}},
	SFENCE: {"sfence", []form{
		{m0F | tail, 0xae, 0xf8, "", args{}},
	}},
	LFENCE: {"lfence", []form{
		{m0F | tail, 0xae, 0xe8, "", args{}},
	}},
})
