// Turns an image about its centre: bilinear samples of a texture, clamped at the edge, made darker by a table.
// drywarp: --grid 64,256 --block 32,8
// drywarp: --arg image=texture(linear,clamp):f32[2048,2048]:random --arg shade=texture:f32[256]:random
// drywarp: --arg out=surface:f32[2048,2048] --arg size=2048 --arg cosine=0.8 --arg sine=0.6

__global__ void texture_filter(cudaTextureObject_t image, cudaTextureObject_t shade, cudaSurfaceObject_t out, int size,
                               float cosine, float sine) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= size || y >= size) return;
  float centre = 0.5f * size;
  float dx = x + 0.5f - centre, dy = y + 0.5f - centre;
  float value = tex2D<float>(image, centre + cosine * dx - sine * dy, centre + sine * dx + cosine * dy);
  value *= tex1Dfetch<float>(shade, (x ^ y) & 255);
  surf2Dwrite(value, out, x * (int)sizeof(float), y);
}
