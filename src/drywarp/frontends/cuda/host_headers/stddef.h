// Sizes and limits that device code of whole .cu files asks for.
#pragma once
#define NULL 0
