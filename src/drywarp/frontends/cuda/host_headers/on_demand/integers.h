// Integer types of fixed width, which most headers of the C library bring along.
#pragma once
#include "../stdint.h"
