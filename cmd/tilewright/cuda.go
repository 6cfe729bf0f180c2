//go:build cuda && cgo && linux

package main

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cuda"
)

func cudaDriver() driver {
	return driver{name: "cuda", about: aboutCUDA, open: openCUDA}
}

func openCUDA() (kernels.Backend, error) {
	d, err := cuda.Open(0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	s := d.Sheet()
	return nil, fmt.Errorf("%s (%s, %d SMs, driver %s) is there, but this build generates no code for it", s.Name, s.Target, s.SMs, s.Driver)
}
