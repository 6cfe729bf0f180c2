package main

// modelCases are the dearest fusions of bench/models.
func modelCases() []testCase { return nil }

// modelText is the HLO of a fusion of a model.
func modelText(name string) string { return "" }
