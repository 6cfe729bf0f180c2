/* A libnvidia-ml.so.1 of a machine with two devices: a GPU whose cap is 350 W and a
 * slice 1g.10gb of another, whose cap is 275.5 W. BROKEN does not start, OLD knows no
 * slices, UNCAPPED knows no cap. The first device has the UUID 000102…0f, the slice
 * 101112…1f. */
#include <string.h>

static int gpu, slice, parent;
static int started;

const char *nvmlErrorString(int code) { return code == 3 ? "Not Supported" : code == 6 ? "Not Found" : "Driver Not Loaded"; }

int nvmlInit_v2(void) {
#ifdef BROKEN
	return 9;
#else
	started++;
	return 0;
#endif
}

int nvmlShutdown(void) {
	started--;
	return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
	if (started != 1) return 1; /* NVML_ERROR_UNINITIALIZED */
	if (!strcmp(uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f")) *device = &gpu;
	else if (!strcmp(uuid, "MIG-10111213-1415-1617-1819-1a1b1c1d1e1f")) *device = &slice;
	else return 6;
	return 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned size) {
	strncpy(name, device == &slice ? "NVIDIA A100-SXM4-80GB MIG 1g.10gb" : "NVIDIA A100-SXM4-80GB", size);
	return 0;
}

#ifndef OLD
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **of) {
	if (device != &slice) return 2;
	*of = &parent;
	return 0;
}
#endif

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
#ifdef UNCAPPED
	return 3;
#endif
	if (device == &slice) return 3; /* slices have no cap of their own */
	*milliwatts = device == &gpu ? 350000 : 275500;
	return 0;
}
