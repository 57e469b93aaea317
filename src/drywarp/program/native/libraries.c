/* Libraries whose code nobody may look at: what begins their use is told, and fails as where they find no GPU.

   They reach the driver by tables that are not documented, so that they would fail without saying why. */
#include "wire.h"

#define LIBRARY(name, failure)                                                                                        \
    API int name(void);                                                                                               \
    int name(void) {                                                                                                  \
        unsupported(#name);                                                                                           \
        return failure;                                                                                               \
    }

enum { NOT_INITIALIZED = 1, FFT_INTERNAL_ERROR = 5 };

LIBRARY(cublasCreate_v2, NOT_INITIALIZED)
LIBRARY(cublasLtCreate, NOT_INITIALIZED)
LIBRARY(cudnnCreate, NOT_INITIALIZED)
LIBRARY(cusolverDnCreate, NOT_INITIALIZED)
LIBRARY(cusparseCreate, NOT_INITIALIZED)
LIBRARY(cufftCreate, FFT_INTERNAL_ERROR)
LIBRARY(cufftPlan1d, FFT_INTERNAL_ERROR)
LIBRARY(cufftPlan2d, FFT_INTERNAL_ERROR)
LIBRARY(cufftPlan3d, FFT_INTERNAL_ERROR)
LIBRARY(cufftPlanMany, FFT_INTERNAL_ERROR)
