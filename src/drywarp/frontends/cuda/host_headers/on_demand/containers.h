// Members of classes that only host code uses, as large as in libstdc++ on x86-64, so that what follows them lies where
// it does in the program. They have no functions: device code cannot use them.
#pragma once
namespace std {
template <int words>
struct __drywarp_words {
  void* words_[words];
};
#define DRYWARP_HOST_TYPE(name, words) \
  template <class...>                  \
  struct name : __drywarp_words<words> {};
DRYWARP_HOST_TYPE(vector, 3)
DRYWARP_HOST_TYPE(list, 3)
DRYWARP_HOST_TYPE(deque, 10)
DRYWARP_HOST_TYPE(queue, 10)
DRYWARP_HOST_TYPE(stack, 10)
DRYWARP_HOST_TYPE(priority_queue, 4)
DRYWARP_HOST_TYPE(map, 6)
DRYWARP_HOST_TYPE(multimap, 6)
DRYWARP_HOST_TYPE(set, 6)
DRYWARP_HOST_TYPE(multiset, 6)
DRYWARP_HOST_TYPE(unordered_map, 7)
DRYWARP_HOST_TYPE(unordered_multimap, 7)
DRYWARP_HOST_TYPE(unordered_set, 7)
DRYWARP_HOST_TYPE(unordered_multiset, 7)
DRYWARP_HOST_TYPE(unique_ptr, 1)
DRYWARP_HOST_TYPE(shared_ptr, 2)
DRYWARP_HOST_TYPE(weak_ptr, 2)
DRYWARP_HOST_TYPE(function, 4)
DRYWARP_HOST_TYPE(future, 2)
DRYWARP_HOST_TYPE(basic_string, 4)
#undef DRYWARP_HOST_TYPE
using string = basic_string<char>;
struct mutex : __drywarp_words<5> {};
struct condition_variable : __drywarp_words<6> {};
struct thread : __drywarp_words<1> {};
}  // namespace std
