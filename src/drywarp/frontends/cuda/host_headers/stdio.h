// Host side only: device code compiled by NVRTC needs nothing from here.
