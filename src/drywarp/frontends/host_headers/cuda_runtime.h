// The compiler driver includes this in every file. The host side is left out; NVRTC has the device side built in.
#pragma once
#include "math.h"
