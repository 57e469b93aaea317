// Double-precision functions that the backend has no instructions for, as range reductions and polynomials of about
// the length of a library's. They stand for its cost; their last digits are not the library's. DW declares a
// function, for OpenCL C and HIP alike.
#ifndef DRYWARP_DOUBLE_FUNCTIONS
#define DRYWARP_DOUBLE_FUNCTIONS

#define DW_FMA(a, b, c) __builtin_fma(a, b, c)

DW double dw_double_exp(double x) {
    double k = __builtin_rint(x * 1.4426950408889634074);
    double r = DW_FMA(-k, 1.9082149292705877e-10, DW_FMA(-k, 0.69314718036912381649, x));
    double p = 1.0 / 39916800;
    p = DW_FMA(p, r, 1.0 / 3628800), p = DW_FMA(p, r, 1.0 / 362880), p = DW_FMA(p, r, 1.0 / 40320);
    p = DW_FMA(p, r, 1.0 / 5040), p = DW_FMA(p, r, 1.0 / 720), p = DW_FMA(p, r, 1.0 / 120);
    p = DW_FMA(p, r, 1.0 / 24), p = DW_FMA(p, r, 1.0 / 6), p = DW_FMA(p, r, 0.5), p = DW_FMA(p, r, 1.0);
    p = DW_FMA(p, r, 1.0);
    p = __builtin_ldexp(p, (int)k);
    p = x > 709.782712893384 ? __builtin_inf() : p;
    return x < -745.1332191019411 ? 0.0 : p;
}
DW double dw_double_log(double x) {
    int e = __builtin_amdgcn_frexp_exp(x);
    double m = __builtin_amdgcn_frexp_mant(x);
    int low = m < 0.70710678118654752440;
    m = low ? m + m : m;
    double k = (double)(e - low), f = (m - 1.0) / (m + 1.0), s = f * f;
    double p = 2.0 / 19;
    p = DW_FMA(p, s, 2.0 / 17), p = DW_FMA(p, s, 2.0 / 15), p = DW_FMA(p, s, 2.0 / 13), p = DW_FMA(p, s, 2.0 / 11);
    p = DW_FMA(p, s, 2.0 / 9), p = DW_FMA(p, s, 2.0 / 7), p = DW_FMA(p, s, 2.0 / 5), p = DW_FMA(p, s, 2.0 / 3);
    p = DW_FMA(f * s, p, f + f);
    p = DW_FMA(k, 0.69314718036912381649, DW_FMA(k, 1.9082149292705877e-10, p));
    return x <= 0.0 ? -__builtin_inf() : p;
}
DW double dw_double_reduced(double x, int *quadrant) {
    double n = __builtin_rint(x * 0.63661977236758134308);
    *quadrant = (int)n;
    double r = DW_FMA(-n, 1.57079632679489655800, x);
    return DW_FMA(-n, 6.12323399573676603587e-17, r);
}
DW double dw_double_sine(double r) {
    double s = r * r, p = -1.0 / 1307674368000.0;
    p = DW_FMA(p, s, 1.0 / 6227020800.0), p = DW_FMA(p, s, -1.0 / 39916800), p = DW_FMA(p, s, 1.0 / 362880);
    p = DW_FMA(p, s, -1.0 / 5040), p = DW_FMA(p, s, 1.0 / 120), p = DW_FMA(p, s, -1.0 / 6);
    return DW_FMA(r * s, p, r);
}
DW double dw_double_cosine(double r) {
    double s = r * r, p = 1.0 / 20922789888000.0;
    p = DW_FMA(p, s, -1.0 / 87178291200.0), p = DW_FMA(p, s, 1.0 / 479001600), p = DW_FMA(p, s, -1.0 / 3628800);
    p = DW_FMA(p, s, 1.0 / 40320), p = DW_FMA(p, s, -1.0 / 720), p = DW_FMA(p, s, 1.0 / 24), p = DW_FMA(p, s, -0.5);
    return DW_FMA(p, s, 1.0);
}
DW double dw_double_sin(double x) {
    int q;
    double r = dw_double_reduced(x, &q), a = dw_double_sine(r), b = dw_double_cosine(r), c = q & 1 ? b : a;
    return q & 2 ? -c : c;
}
DW double dw_double_cos(double x) {
    int q;
    double r = dw_double_reduced(x, &q), a = dw_double_sine(r), b = dw_double_cosine(r), c = q & 1 ? a : b;
    return (q + 1) & 2 ? -c : c;
}
DW double dw_double_tan(double x) {
    int q;
    double r = dw_double_reduced(x, &q), a = dw_double_sine(r), b = dw_double_cosine(r);
    return q & 1 ? -b / a : a / b;
}
DW double dw_double_pow(double x, double y) { return dw_double_exp(y * dw_double_log(__builtin_fabs(x))); }
DW double dw_double_tanh(double x) { return 1.0 - 2.0 / (dw_double_exp(x + x) + 1.0); }
DW double dw_double_sinh(double x) { return 0.5 * (dw_double_exp(x) - dw_double_exp(-x)); }
DW double dw_double_cosh(double x) { return 0.5 * (dw_double_exp(x) + dw_double_exp(-x)); }
DW double dw_double_cbrt(double x) { return __builtin_copysign(dw_double_pow(x, 0.33333333333333333333), x); }
DW double dw_double_atan(double x) {
    double a = __builtin_fabs(x), y = a > 1.0 ? 1.0 / a : a, s = y * y, p = 1.0 / 31;
    p = DW_FMA(p, -s, 1.0 / 29), p = DW_FMA(p, -s, 1.0 / 27), p = DW_FMA(p, -s, 1.0 / 25), p = DW_FMA(p, -s, 1.0 / 23);
    p = DW_FMA(p, -s, 1.0 / 21), p = DW_FMA(p, -s, 1.0 / 19), p = DW_FMA(p, -s, 1.0 / 17), p = DW_FMA(p, -s, 1.0 / 15);
    p = DW_FMA(p, -s, 1.0 / 13), p = DW_FMA(p, -s, 1.0 / 11), p = DW_FMA(p, -s, 1.0 / 9), p = DW_FMA(p, -s, 1.0 / 7);
    p = DW_FMA(p, -s, 1.0 / 5), p = DW_FMA(p, -s, 1.0 / 3), p = DW_FMA(-y * s, p, y);
    return __builtin_copysign(a > 1.0 ? 1.57079632679489655800 - p : p, x);
}
DW double dw_double_asin(double x) { return dw_double_atan(x / __builtin_sqrt(1.0 - x * x)); }
DW double dw_double_acos(double x) { return 1.57079632679489655800 - dw_double_asin(x); }
DW double dw_double_atan2(double y, double x) {
    double r = dw_double_atan(y / x);
    return x < 0.0 ? r + __builtin_copysign(3.14159265358979323846, y) : r;
}
// Abramowitz and Stegun 7.1.26, its polynomial evaluated in double.
DW double dw_double_erf(double x) {
    double t = 1.0 / DW_FMA(0.3275911, __builtin_fabs(x), 1.0), p = 1.061405429;
    p = DW_FMA(p, t, -1.453152027), p = DW_FMA(p, t, 1.421413741), p = DW_FMA(p, t, -0.284496736);
    p = DW_FMA(p, t, 0.254829592);
    return __builtin_copysign(1.0 - p * t * dw_double_exp(-x * x), x);
}
DW double dw_double_fmod(double x, double y) { return x - __builtin_trunc(x / y) * y; }

#endif
