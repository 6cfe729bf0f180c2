// Models is the table of other people's models: what loads, partitions, ranks
// and tunes of the texts in corpus/, how long that takes, and whole models
// beside XLA on the same processor. README.md says where the texts are from.
//
// Loading and tuning are the command's own, each in a process of its own, whose
// peak memory is read when it ends; a crash or a hang is a row of the table.
//
//	go run ./bench/models -run-budget 60s
package main
