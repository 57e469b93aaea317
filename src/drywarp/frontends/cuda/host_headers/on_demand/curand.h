// Random numbers on the device, where the headers of cuRAND are installed.
#pragma once
#include <curand_kernel.h>
