// Direct Coulomb summation in double precision: the potential of point charges over the plane z = 0.
// drywarp: --grid 64,256 --block 32,8
// drywarp: --arg charges=f64[16,4]:random --arg potential=f64[2048,2048] --arg count=16 --arg n=2048

__global__ void double_precision(const double* charges, double* potential, int count, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= n || row >= n) return;
  double x = (double)column / n, y = (double)row / n;
  double sum = 0.0;
  for (int k = 0; k < count; ++k) {
    double dx = charges[4 * k] - x;
    double dy = charges[4 * k + 1] - y;
    double dz = charges[4 * k + 2];
    sum += charges[4 * k + 3] / sqrt(dx * dx + dy * dy + dz * dz);
  }
  potential[row * n + column] = sum;
}
