// The element types of cuFFT; its functions are called from the host.
#pragma once
#include <cuComplex.h>
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
