// Package draw makes pictures of memory as SVG pages that need no other file.
//
// [LayoutSVG] draws a tiled layout. A [Picture] is a page of lines and sectors of
// memory for other subjects: fill in its [Cell]s, which are intervals of bytes,
// and where there is a logical array its [Array], which a [Plane] collects.
package draw
