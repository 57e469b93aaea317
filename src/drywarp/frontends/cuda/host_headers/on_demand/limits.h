// Limits of integer types, which other headers of the C library bring along.
#pragma once
#include "../limits.h"
