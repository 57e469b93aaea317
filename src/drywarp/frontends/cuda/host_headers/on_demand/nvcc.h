// What nvcc and the compiler of the host say of themselves on Linux, and NVRTC does not.
#pragma once
#define __NVCC__ 1
#define __linux__ 1
#define __unix__ 1
