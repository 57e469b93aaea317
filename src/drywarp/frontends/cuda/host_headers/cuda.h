// Host side but for the objects that kernels take; device code compiled by NVRTC needs nothing else from here.
#pragma once
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
typedef struct CUtensorMap_st {
  alignas(64) unsigned long long opaque[16];
} CUtensorMap;
