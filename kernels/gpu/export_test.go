package gpu

// Spin is the anchor, for tests that run it elsewhere.
var Spin = spin

// Stamps reads the clocks, likewise.
var Stamps = stamps
