// Limits of floating-point types, which other headers of the C library bring along.
#pragma once
#include "../float.h"
