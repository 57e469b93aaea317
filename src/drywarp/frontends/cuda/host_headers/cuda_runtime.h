// The compiler driver includes this in every file. The host side is left out; NVRTC has the device side built in.
#pragma once
#include "math.h"
#ifndef CUDART_VERSION
#define CUDART_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif
// A word of the compilers of the host, which only silences a warning.
#define __extension__
// glibc's sys/types.h brings these to every file that nvcc compiles.
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
