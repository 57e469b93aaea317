// bfloat16, which headers of the libraries on the host bring along.
#pragma once
#include <cuda_bf16.h>
