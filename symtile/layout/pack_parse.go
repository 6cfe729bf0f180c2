package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// ParsePack reads
//
//	pack 128x256 inner_dims_pos=[0, 1] inner_tiles=[8, 32] outer_dims_perm=[1, 0] padding_value=0 to 8x16x8x32
//	unpack 16x8x8x32 inner_dims_pos=[0, 1] inner_tiles=[8, 32] to 128x256
//
// outer_dims_perm, padding_value and, of a pack, "to" may be left out. The
// result has passed Check.
func ParsePack(text string) (Pack, error) {
	s := packParser{text: text}
	p, err := s.pack()
	if err == nil {
		if err = p.Check(); err != nil {
			err = fmt.Errorf("%s: %w", strings.TrimSpace(text), err)
		}
	}
	return p, err
}

// ParsePackOf reads the attributes of a pack of a tensor of extents source:
// "inner_dims_pos=[0, 1] inner_tiles=[8, 32]".
func ParsePackOf(source []int64, attributes string) (Pack, error) {
	s := packParser{text: attributes}
	p := Pack{Source: source}
	err := s.attributes(&p)
	if err == nil && p.To == nil {
		err = s.end()
	}
	if err == nil {
		err = p.Check()
	}
	return p, err
}

// ParseUnpackOf reads the attributes of an unpack of a tensor of extents packed:
// "inner_dims_pos=[0, 1] inner_tiles=[8, 32] to 128x256".
func ParseUnpackOf(packed []int64, attributes string) (Pack, error) {
	s := packParser{text: attributes}
	p := Pack{Unpack: true}
	err := s.attributes(&p)
	if err == nil && p.To == nil {
		err = s.fail("an unpack says what it unpacks to: to 128x256")
	}
	p.Source, p.To = p.To, packed
	if err == nil {
		err = p.Check()
	}
	return p, err
}

// String prints what ParsePack reads.
func (p Pack) String() string {
	var b strings.Builder
	if p.Unpack {
		b.WriteString("unpack " + ExtentsText(p.Packed()))
	} else {
		b.WriteString("pack " + ExtentsText(p.Source))
	}
	fmt.Fprintf(
		&b, " inner_dims_pos=%s inner_tiles=%s",
		ListText(p.InnerDimsPos), ListText(p.InnerTiles),
	)
	if p.OuterDimsPerm != nil {
		fmt.Fprintf(&b, " outer_dims_perm=%s", ListText(p.OuterDimsPerm))
	}
	if p.Padding != nil {
		b.WriteString(" padding_value=" + strconv.FormatFloat(*p.Padding, 'g', -1, 64))
	}
	if p.Unpack {
		b.WriteString(" to " + ExtentsText(p.Source))
	}
	return b.String()
}

// A packParser reads the text of a pack.
type packParser struct {
	text string
	at   int
}

// fail is an error with what was expected here, and a caret.
func (s *packParser) fail(format string, args ...any) error {
	return fmt.Errorf(
		"%s\n  %s\n  %s^",
		fmt.Sprintf(format, args...), s.text,
		strings.Repeat(" ", s.at),
	)
}

// skip skips spaces and commas.
func (s *packParser) skip() {
	for s.at < len(s.text) &&
		strings.IndexByte(" \t\n,", s.text[s.at]) >= 0 {
		s.at++
	}
}

// word reads letters and underscores.
func (s *packParser) word() string {
	s.skip()
	start := s.at
	for s.at < len(s.text) &&
		(s.text[s.at] == '_' || s.text[s.at]|0x20 >= 'a' &&
			s.text[s.at]|0x20 <= 'z') {
		s.at++
	}
	return s.text[start:s.at]
}

// take reads c, if it comes next.
func (s *packParser) take(c byte) bool {
	s.skip()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// end is an error where text is left.
func (s *packParser) end() error {
	if s.skip(); s.at < len(s.text) {
		return s.fail("unexpected %q", s.text[s.at:])
	}
	return nil
}

// pack reads the whole operation.
func (s *packParser) pack() (p Pack, err error) {
	start := s.at
	switch s.word() {
	case "pack":
	case "unpack":
		p.Unpack = true
	default:
		s.at = start
		return p, s.fail("expected pack or unpack")
	}
	first, err := s.extents()
	if err != nil {
		return p, err
	}
	if !p.Unpack {
		p.Source = first
		err = s.attributes(&p)
		return p, err
	}
	err = s.attributes(&p)
	if err == nil && p.To == nil {
		err = s.fail("an unpack says what it unpacks to: to 128x256")
	}
	p.Source = p.To
	p.To = first
	return p, err
}

// attributes reads name=value pairs and, as the last, "to" and extents.
func (s *packParser) attributes(p *Pack) error {
	for s.skip(); s.at < len(s.text); s.skip() {
		start := s.at
		name := s.word()
		if name == "to" {
			to, err := s.extents()
			p.To = to
			if err == nil {
				err = s.end()
			}
			return err
		}
		if !s.take('=') {
			s.at = start
			return s.fail("expected inner_dims_pos=, inner_tiles=, outer_dims_perm=, padding_value= or to")
		}
		if err := s.attribute(p, name, start); err != nil {
			return err
		}
	}
	return nil
}

// attribute reads the value of one attribute.
func (s *packParser) attribute(p *Pack, name string, start int) (err error) {
	var ints []int64
	switch name {
	case "inner_tiles":
		p.InnerTiles, err = s.list()
	case "inner_dims_pos":
		ints, err = s.list()
		p.InnerDimsPos = dimNumbers(ints)
	case "outer_dims_perm":
		ints, err = s.list()
		p.OuterDimsPerm = append([]int{}, dimNumbers(ints)...)
	case "padding_value":
		p.Padding, err = s.padding()
	default:
		s.at = start
		return s.fail("%q is not an attribute of a pack; those are inner_dims_pos, inner_tiles, outer_dims_perm and padding_value", name)
	}
	return err
}

// dimNumbers converts numbers of dimensions; one that no array has stays out of
// range.
func dimNumbers(xs []int64) (out []int) {
	for _, x := range xs {
		out = append(out, int(min(x, maxRank+1)))
	}
	return out
}

// list reads [0, 1].
func (s *packParser) list() (out []int64, err error) {
	if !s.take('[') {
		return nil, s.fail("expected a list such as [0, 1]")
	}
	for !s.take(']') {
		x, err := s.integer()
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// extents reads 128x256.
func (s *packParser) extents() (out []int64, err error) {
	for {
		x, err := s.integer()
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if s.at >= len(s.text) || s.text[s.at] != 'x' {
			return out, nil
		}
		s.at++
	}
}

// integer reads a number.
func (s *packParser) integer() (int64, error) {
	s.skip()
	start := s.at
	for s.at < len(s.text) &&
		'0' <= s.text[s.at] &&
		s.text[s.at] <= '9' {
		s.at++
	}
	x, err := strconv.ParseInt(
		s.text[start:s.at], 10, 64,
	)
	if err != nil {
		s.at = start
		return 0, s.fail("expected a number that fits 63 bits")
	}
	return x, nil
}

// padding reads a floating-point number.
func (s *packParser) padding() (*float64, error) {
	s.skip()
	start := s.at
	for s.at < len(s.text) &&
		strings.IndexByte(" \t\n,", s.text[s.at]) < 0 {
		s.at++
	}
	x, err := strconv.ParseFloat(
		s.text[start:s.at], 64,
	)
	if err != nil {
		s.at = start
		return nil, s.fail("expected a number as padding value")
	}
	return &x, nil
}
