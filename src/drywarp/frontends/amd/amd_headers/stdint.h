// The integer types are in the runtime header.
#include <hip/hip_runtime.h>
