// Half precision, which headers of the libraries on the host bring along.
#pragma once
#include <cuda_fp16.h>
