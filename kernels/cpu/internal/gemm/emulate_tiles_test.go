package gemm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// tileLength is the number of bytes of an instruction that the assembler does not have,
// which begins so, by Intel's SDM, volume 2: C4, two bytes of prefix, an opcode, ModRM, and with a memory operand a SIB and
// a displacement.
func tileLength(code []byte) int {
	if len(code) > 0 && code[0] == 0x62 {
		return 6 // EVEX, registers only
	}
	if len(code) < 5 {
		return 5
	}
	switch code[4] >> 6 {
	case 3:
		return 5
	case 2:
		return 10
	}
	if code[4]&7 == 4 {
		return 6
	}
	return 5
}

// tileInstruction decodes an instruction of AMX or AVX-VNNI: its name and operands,
// sources first.
func tileInstruction(code []byte) []string {
	if code[0] == 0x62 {
		return evexBF16(code)
	}
	registers := []string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI"}
	tile := func(n byte) string { return strconv.Itoa(int(n & 7)) }
	memory := func() string {
		disp := ""
		if code[4]>>6 == 2 {
			disp = strconv.Itoa(int(binary.LittleEndian.Uint32(code[6:])))
		}
		return fmt.Sprintf("%s(%s)(%s*%d)", disp, registers[code[5]&7], registers[code[5]>>3&7], 1<<(code[5]>>6))
	}
	reg, rm, vvvv := code[4]>>3, code[4], ^code[2]>>3&15
	if code[3] == 0x50 {
		return vexQuads(code)
	}
	bad := []string{fmt.Sprintf("% x", code)}
	if code[0] != 0xc4 || code[1] != 0xe2 || code[2]&0x84 != 0 {
		return bad // another map, W or L
	}
	switch key := fmt.Sprintf("%02x %d %d", code[3], code[2]&3, code[4]>>6); {
	case key == "49 0 0" && code[4] == 0:
		return []string{"LDTILECFG", "(AX)"}
	case key == "49 0 3" && code[4] == 0xc0 && vvvv == 0:
		return []string{"TILERELEASE", ""}
	case key == "49 3 3" && rm&7 == 0 && vvvv == 0:
		return []string{"TILEZERO", tile(reg)}
	case (key == "4b 3 0" || key == "4b 3 2") && rm&7 == 4 && vvvv == 0:
		return []string{"TILELOADD", memory(), tile(reg)}
	case (key == "4b 2 0" || key == "4b 2 2") && rm&7 == 4 && vvvv == 0:
		return []string{"TILESTORED", tile(reg), memory()}
	case code[3] == 0x5e && code[4]>>6 == 3 && vvvv < 8:
		name := []string{"TDPBUUD", "TDPBUSD", "TDPBSUD", "TDPBSSD"}[code[2]&3]
		return []string{name, tile(vvvv), tile(rm), tile(reg)}
	case code[3] == 0x5c && code[2]&3 == 2 && code[4]>>6 == 3 && vvvv < 8:
		return []string{"TDPBF16PS", tile(vvvv), tile(rm), tile(reg)}
	case code[3] == 0x5c && code[2]&3 == 3 && code[4]>>6 == 3 && vvvv < 8:
		return []string{"TDPFP16PS", tile(vvvv), tile(rm), tile(reg)}
	}
	return bad
}

// evexBF16 decodes VDPBF16PS of 512 bits without a mask: EVEX.512.F3.0F38.W0 52 /r.
func evexBF16(code []byte) []string {
	// Registers have five bits: in vvvv, ModRM and, as complements, in the prefix.
	high, vvvv, top := ^code[1], ^code[2]>>3&15, ^code[3]>>3&1
	fixed := []byte{code[1] & 15, code[2] & 0x87, code[3] | 8, code[4], code[5] >> 6}
	if !bytes.Equal(fixed, []byte{2, 6, 0x48, 0x52, 3}) {
		return []string{fmt.Sprintf("% x", code)}
	}
	vector := func(top, high, low byte) string {
		return fmt.Sprintf("Z%d", top&1<<4|high&1<<3|low&7)
	}
	return []string{
		"VDPBF16PS",
		vector(high>>6, high>>5, code[5]),
		vector(top, vvvv>>3, vvvv),
		vector(high>>4, high>>7, code[5]>>3),
	}
}

// vexQuads decodes VPDPBUSD of 256 bits: VEX.256.66.0F38.W0 50 /r.
func vexQuads(code []byte) []string {
	// High bits of registers are complements.
	high, vvvv := ^code[1], ^code[2]>>3&15
	vector := func(high, low byte) string {
		return fmt.Sprintf("Y%d", high&1<<3|low&7)
	}
	if code[1]&0x5f != 0x42 || code[2]&0x87 != 5 || code[4]>>6 != 3 {
		return []string{fmt.Sprintf("% x", code)}
	}
	return []string{
		"VPDPBUSD",
		vector(high>>5, code[4]),
		vector(vvvv>>3, vvvv),
		vector(high>>7, code[4]>>3),
	}
}

// tileSteps are the instructions of AMX.
var tileSteps = map[string]func(m *machine, ops []string) error{
	"LDTILECFG": func(m *machine, ops []string) error {
		at, err := m.address(ops[0])
		if err != nil {
			return err
		}
		c, err := m.bytes(at, 64)
		if err != nil {
			return err
		}
		rows := int(c[48] + c[50])
		if want := tileConfiguration(rows); string(c) != string(want) {
			return fmt.Errorf("the configuration is % x", c)
		}
		m.tiles, m.configured = [8][16][64]byte{}, true
		copy(m.tileRows[:], c[48:])
		return nil
	},
	"TILERELEASE": func(m *machine, _ []string) error { m.configured = false; return nil },
	"TILEZERO": func(m *machine, ops []string) error {
		m.tiles[number8(ops[0])] = [16][64]byte{}
		return m.unconfigured()
	},
	"TILELOADD": func(m *machine, ops []string) error {
		return m.eachRow(ops[0], ops[1], func(tile, memory []byte) { copy(tile, memory) })
	},
	"TILESTORED": func(m *machine, ops []string) error {
		return m.eachRow(ops[1], ops[0], func(tile, memory []byte) { copy(memory, tile) })
	},
	"TDPBSSD": tileProducts(true, true),
	"TDPBSUD": tileProducts(true, false),
	"TDPBUSD": tileProducts(false, true),
	"TDPBUUD": tileProducts(false, false),

	"TDPBF16PS": tileHalves(ofBF16),
	"TDPFP16PS": tileHalves(ofF16),
}

// tileHalves adds products of pairs of bf16 or f16, as the manual's operation does: the sums
// of even terms and of odd ones of a row, from zero on, and then both to what the element
// held.
func tileHalves(of func(uint16) float32) func(m *machine, ops []string) error {
	return func(m *machine, ops []string) error {
		b := &m.tiles[number8(ops[0])]
		a := &m.tiles[number8(ops[1])]
		c := &m.tiles[number8(ops[2])]
		le := binary.LittleEndian
		for i := range 16 {
			var sums [32]float32
			for k := range 16 {
				for n := range 32 {
					x := of(le.Uint16(a[i][4*k+2*(n%2):]))
					y := of(le.Uint16(b[k][2*n:]))
					sums[n] = multiplyAddHalf(x, y, sums[n])
				}
			}
			for j := range 16 {
				to := c[i][4*j:]
				sum := addFlushed(sums[2*j], sums[2*j+1])
				sum = addFlushed(math.Float32frombits(le.Uint32(to)), sum)
				le.PutUint32(to, math.Float32bits(sum))
			}
		}
		return m.unconfigured()
	}
}

func number8(tile string) int { return int(tile[0] - '0') }

func (m *machine) unconfigured() error {
	if !m.configured {
		return fmt.Errorf("tiles are not configured")
	}
	return nil
}

// eachRow moves the rows of a tile; the index of the address is the stride.
func (m *machine) eachRow(memory1, tile string, move func(tile, memory []byte)) error {
	f := memory.FindStringSubmatch(memory1)
	stride := m.regs[f[3]]
	at, err := m.address(memory1)
	if err != nil {
		return err
	}
	at -= stride
	rows := m.tileRows[number8(tile)]
	if rows == 0 {
		return fmt.Errorf("tile %s is not configured", tile)
	}
	for r := range rows {
		b, err := m.bytes(at+uint64(r)*stride, 64)
		if err != nil {
			return err
		}
		move(m.tiles[number8(tile)][r][:], b)
	}
	return m.unconfigured()
}

// tileProducts adds products of quads of bytes: the first operand of the manual's
// syntax is the sum, the second a, the third b; here they are in reverse order.
func tileProducts(signedA, signedB bool) func(m *machine, ops []string) error {
	value := func(x byte, signed bool) int32 {
		if signed {
			return int32(int8(x))
		}
		return int32(x)
	}
	return func(m *machine, ops []string) error {
		b, a, sum := &m.tiles[number8(ops[0])], &m.tiles[number8(ops[1])], &m.tiles[number8(ops[2])]
		le := binary.LittleEndian
		for i := range 16 {
			for k := range 16 {
				for j := range 16 {
					x := int32(le.Uint32(sum[i][4*j:]))
					for q := range 4 {
						x += value(a[i][4*k+q], signedA) * value(b[k][4*j+q], signedB)
					}
					le.PutUint32(sum[i][4*j:], uint32(x))
				}
			}
		}
		return m.unconfigured()
	}
}
