// The parts of Thrust that compile for the device alone.
#pragma once
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/pair.h>
#include <thrust/tuple.h>
