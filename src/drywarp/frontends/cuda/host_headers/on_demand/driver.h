// Handles of the driver's interface that kernels take as arguments.
#pragma once
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
