package gpu

// Spin is the anchor, for tests that run it elsewhere.
var Spin = spin
