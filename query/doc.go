// Package query answers questions about fusions with documents: structs with JSON
// tags, which the command line, the server and the C library print alike. Nothing is
// compiled, run, measured or written for an answer.
//
//	Read          text of a module → its fusions
//	NewFusion     indexing maps, tiles and constraints of a fusion, or why it has none
//	NewPartition  how a module was split into fusions, and at which price
//	Open          a database or snapshot → a Store, which looks plans up
package query
