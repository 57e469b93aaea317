// The compiler driver includes this in every file. The host side is left out; NVRTC has the device side built in.
#pragma once
#include "math.h"
// glibc's sys/types.h brings these to every file that nvcc compiles.
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
