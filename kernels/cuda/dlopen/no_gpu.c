/* A libcuda.so.1 of a machine whose driver does not start, or, with DEVICES
 * defined, starts and has no device. */
#include "cuda.h"

CUresult cuInit(unsigned int flags) {
	(void)flags;
#ifdef DEVICES
	return CUDA_SUCCESS;
#else
	return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
#endif
}

CUresult cuDeviceGetCount(int *count) {
	*count = 0;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **str) {
	*str = error == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : "CUDA_ERROR_UNKNOWN";
	return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **str) {
	*str = error == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ? "system has unsupported display driver / cuda driver combination" : "unknown error";
	return CUDA_SUCCESS;
}
