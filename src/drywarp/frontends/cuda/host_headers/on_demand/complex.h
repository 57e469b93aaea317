// Complex numbers, which headers of the libraries on the host bring along.
#pragma once
#include <cuComplex.h>
