//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"strings"

	"gorgonia.org/cu"

	"github.com/tilewright/tilewright/kernels/cuda/nvml"
	"github.com/tilewright/tilewright/kernels/gpu/device"
)

// These attributes have no name in cu (CUDA Driver API, CUdevice_attribute).
const (
	maxSharedMemoryPerBlockOptIn = cu.DeviceAttribute(97)
	maxBlocksPerMultiprocessor   = cu.DeviceAttribute(106)
	reservedSharedMemoryPerBlock = cu.DeviceAttribute(111)
	clusterLaunch                = cu.DeviceAttribute(120)
)

// These properties have no attribute (CUDA C++ Programming Guide, Compute
// Capabilities; Thread Block Clusters).
const (
	// threadRegisters is the maximum number of registers of a thread, from
	// compute capability 3.5 on.
	threadRegisters = 255
	// registerUnit is the granularity of register allocation of a warp, from 3.0
	// on.
	registerUnit = 256
	// portableCluster is the number of blocks of a cluster that all devices with
	// clusters support.
	portableCluster = 8
)

// readSpec reads the properties of a device from the driver.
func readSpec(d cu.Device) (device.Spec, error) {
	s := device.Spec{ThreadRegisters: threadRegisters, RegisterUnit: registerUnit}
	var major, minor, threads, l2, clock, memoryClock, bus, clusters int
	err := readAll([]reading[cu.DeviceAttribute]{
		{cu.ComputeCapabilityMajor, &major}, {cu.ComputeCapabilityMinor, &minor},
		{cu.MultiprocessorCount, &s.SMs},
		{cu.MaxRegistersPerMultiprocessor, &s.Registers}, {cu.MaxRegistersPerBlock, &s.BlockRegisters},
		{maxSharedMemoryPerBlockOptIn, &s.BlockShared}, {cu.MaxSharedMemoryPerMultiprocessor, &s.SMShared},
		{reservedSharedMemoryPerBlock, &s.ReservedShared},
		{cu.MaxThreadsPerBlock, &s.BlockThreads}, {cu.MaxThreadsPerMultiprocessor, &threads},
		{maxBlocksPerMultiprocessor, &s.Blocks},
		{clusterLaunch, &clusters}, {cu.L2CacheSize, &l2},
		{cu.ClockRate, &clock}, {cu.MemoryClockRate, &memoryClock},
		{cu.GlobalMemoryBusWidth, &bus},
	}, "cuDeviceGetAttribute", d.Attribute)
	if err != nil {
		return s, err
	}
	// The attribute only tells whether there are clusters at all.
	if clusters != 0 {
		s.Cluster = portableCluster
	}
	s.Warps = threads / device.WarpThreads
	s.L2 = int64(l2)
	s.Clock = float64(clock) * 1e3
	// two transfers of the bus's bits a clock, in kHz
	s.Bandwidth = 2 * float64(memoryClock) *
		1e3 * float64(bus) / 8
	return s, describe(&s, d, major, minor)
}

// reading is an attribute and the variable that receives its value.
type reading[A any] struct {
	attribute A
	to        *int
}

// readAll reads attributes; the error of one names the call and the attribute.
func readAll[A any](
	all []reading[A], call string,
	get func(A) (int, error),
) error {
	for _, r := range all {
		v, err := get(r.attribute)
		if err != nil {
			return failed(fmt.Sprintf("%s %v", call, r.attribute), err)
		}
		*r.to = v
	}
	return nil
}

// describe adds the properties that are not attributes: target, name, rates,
// memory and the version of the driver. The rates are those of the product's data
// sheet.
func describe(s *device.Spec, d cu.Device, major, minor int) (err error) {
	if s.Target, err = device.Target(major, minor); err != nil {
		return err
	}
	if s.Name, err = d.Name(); err != nil {
		return failed("cuDeviceGetName", err)
	}
	s.Rates = device.ProductRates(s.Target, s.Name)
	if s.Memory, err = d.TotalMem(); err != nil {
		return failed("cuDeviceTotalMem", err)
	}
	s.Simulated = withoutGPU()
	v := cu.Version()
	s.Driver = fmt.Sprintf(
		"CUDA %d.%d", v/1000, v%1000/10,
	)
	askManagement(s, d)
	return nil
}

// askManagement adds what NVIDIA's management library knows: the power cap and the MIG
// slice, which the name of the device has, too, with drivers that tell it. Without the
// library s.Unread says why they are not known.
func askManagement(s *device.Spec, d cu.Device) {
	id, err := uuid(d)
	if err == nil {
		var f nvml.Facts
		f, err = nvml.Read(nvml.Library, id)
		s.Watts, s.Slice = f.Watts, f.Slice
	}
	if err != nil {
		s.Unread = "power cap or MIG slice: " + err.Error()
	}
	if s.Slice != "" {
		s.Bandwidth = device.SliceBandwidth(s.Target, s.Name, s.Memory, s.Bandwidth)
	}
	if s.Slice != "" && !strings.Contains(s.Name, device.SliceMark) {
		s.Name += device.SliceMark + s.Slice
	}
}
