// The functions are in the runtime header.
#include <hip/hip_runtime.h>
#include "../host_headers/math.h"
