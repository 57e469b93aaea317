// Types and constants of OpenCL C that clang expects from this header; it declares the built-in functions itself.
#ifndef DRYWARP_OPENCL_BASE
#define DRYWARP_OPENCL_BASE

#define cl_khr_fp64 1
#define cl_khr_fp16 1
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#define DRYWARP_VECTORS(T)                              \
    typedef T T##2 __attribute__((ext_vector_type(2))); \
    typedef T T##3 __attribute__((ext_vector_type(3))); \
    typedef T T##4 __attribute__((ext_vector_type(4))); \
    typedef T T##8 __attribute__((ext_vector_type(8))); \
    typedef T T##16 __attribute__((ext_vector_type(16)));
DRYWARP_VECTORS(char)
DRYWARP_VECTORS(uchar)
DRYWARP_VECTORS(short)
DRYWARP_VECTORS(ushort)
DRYWARP_VECTORS(int)
DRYWARP_VECTORS(uint)
DRYWARP_VECTORS(long)
DRYWARP_VECTORS(ulong)
DRYWARP_VECTORS(half)
DRYWARP_VECTORS(float)
DRYWARP_VECTORS(double)

typedef uint cl_mem_fence_flags;
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define CLK_IMAGE_MEM_FENCE 4

typedef enum memory_scope {
    memory_scope_work_item = __OPENCL_MEMORY_SCOPE_WORK_ITEM,
    memory_scope_work_group = __OPENCL_MEMORY_SCOPE_WORK_GROUP,
    memory_scope_device = __OPENCL_MEMORY_SCOPE_DEVICE,
    memory_scope_all_svm_devices = __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES,
    memory_scope_sub_group = __OPENCL_MEMORY_SCOPE_SUB_GROUP
} memory_scope;

typedef enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
    memory_order_seq_cst = __ATOMIC_SEQ_CST
} memory_order;

#define NULL ((void *)0)
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 0xffffffffU
#define LONG_MAX 0x7fffffffffffffffL
#define LONG_MIN (-0x7fffffffffffffffL - 1)
#define ULONG_MAX 0xffffffffffffffffUL
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_EPSILON 0x1.0p-23f
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define DBL_EPSILON 0x1.0p-52
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_MIN 0x1.0p-1022
#define MAXFLOAT FLT_MAX
#define HUGE_VALF (__builtin_huge_valf())
#define HUGE_VAL (__builtin_huge_val())
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define M_E_F 2.71828182845904523536028747135266250f
#define M_LOG2E_F 1.44269504088896340735992468100189214f
#define M_LOG10E_F 0.434294481903251827651128918916605082f
#define M_LN2_F 0.693147180559945309417232121458176568f
#define M_LN10_F 2.30258509299404568401799145468436421f
#define M_PI_F 3.14159265358979323846264338327950288f
#define M_PI_2_F 1.57079632679489661923132169163975144f
#define M_PI_4_F 0.785398163397448309615660845819875721f
#define M_1_PI_F 0.318309886183790671537767526745028724f
#define M_SQRT2_F 1.41421356237309504880168872420969808f
#define M_E 2.71828182845904523536028747135266250
#define M_LOG2E 1.44269504088896340735992468100189214
#define M_LN2 0.693147180559945309417232121458176568
#define M_LN10 2.30258509299404568401799145468436421
#define M_PI 3.14159265358979323846264338327950288
#define M_PI_2 1.57079632679489661923132169163975144
#define M_PI_4 0.785398163397448309615660845819875721
#define M_1_PI 0.318309886183790671537767526745028724
#define M_SQRT2 1.41421356237309504880168872420969808

#endif
