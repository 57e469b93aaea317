// Sizes and limits.
#include <hip/hip_runtime.h>
