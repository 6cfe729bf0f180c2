package amd64

// LoadBF16 returns eight bf16 as f32.
func (c *Chain) LoadBF16(from Mem, advance int32) Value {
	return c.Do(
		VPSLLD, c.Load(VPMOVZXWD, from, advance), Imm(16),
	)
}

// StoreBF16 stores v rounded to nearest even; NaN stays NaN.
func (c *Chain) StoreBF16(to Mem, advance int32, v Value) {
	odd := c.Do(
		VPAND,
		c.Do(VPSRLD, v, Imm(16)),
		c.Const32(1),
	)
	rounded := c.Do(
		VPADDD, c.Do(VPADDD, v, odd), c.Const32(0x7fff),
	)
	quiet := c.Do(VPOR, v, c.Const32(0x40<<16))
	bits := c.Do(
		VBLENDVPS, rounded, quiet,
		c.Do(VCMPPS, v, v, compareUnordered),
	)
	c.storeWords(
		to, advance, c.Do(VPSRLD, bits, Imm(16)),
	)
}

// storeWords stores the low halves of v, of which the high ones are 0.
func (c *Chain) storeWords(to Mem, advance int32, v Value) {
	if c.wide {
		c.Store(VPMOVDW, to, advance, v)
		return
	}
	low := c.Do(VEXTRACTI128, v, Imm(0))
	high := c.Do(VEXTRACTI128, v, Imm(1))
	c.Store(
		VMOVDQU, to, advance, c.Do(VPACKUSDW, low, high),
	)
}

// StoreWords stores the low half of every lane of v.
func (c *Chain) StoreWords(to Mem, advance int32, v Value) {
	if !c.wide {
		v = c.Do(VPAND, v, c.Const32(0xffff))
	}
	c.storeWords(to, advance, v)
}

// StoreBytes stores the low byte of every lane of v.
func (c *Chain) StoreBytes(to Mem, advance int32, v Value) {
	if c.wide {
		c.Store(VPMOVDB, to, advance, v)
		return
	}
	v = c.Do(VPAND, v, c.Const32(0xff))
	low := c.Do(VEXTRACTI128, v, Imm(0))
	high := c.Do(VEXTRACTI128, v, Imm(1))
	words := c.Do(VPACKUSDW, low, high)
	c.Store(
		VMOVQ, to, advance, c.Do(VPACKUSWB, words, words),
	)
}

// LoadF16 returns eight f16 as f32.
func (c *Chain) LoadF16(from Mem, advance int32) Value {
	return c.Load(VCVTPH2PS, from, advance)
}

// StoreF16 stores v rounded to nearest even; too large becomes ±Inf.
func (c *Chain) StoreF16(to Mem, advance int32, v Value) {
	c.Store(
		VMOVDQU, to, advance,
		c.Do(VCVTPS2PH, v, Imm(0)),
	)
}

// ToInt32 returns x rounded towards zero as s32, with what does not fit at the
// nearest end of the range and NaN at 0.
func (c *Chain) ToInt32(x Value) Value {
	// 2^31 is the least f32 too large; the instruction returns -2^31 for what
	// does not fit, which is right below and one off above.
	tooLarge := c.Do(
		VCMPPS, x, c.Float32(1<<31), compareNLTU,
	)
	i := c.Do(VPXOR, c.Do(VCVTTPS2DQ, x), tooLarge)
	return c.Do(
		VPAND, i, c.Do(VCMPPS, x, x, compareORD),
	)
}

// FromInt32 returns the s32 in x as f32, rounded to nearest even.
func (c *Chain) FromInt32(x Value) Value { return c.Do(VCVTDQ2PS, x) }
