// Layer norm and RMS norm, forward and backward, as a textbook has them: one block takes one row at a time, its threads
// stride over the columns, sums go through shared memory. Nothing here is tuned. They check the generated kernels, which
// share no line with them, and are the baseline in the GPU's table.
//
//   trireme jit examples/jit/normalization.cu --name layer_norm_forward --arch sm_90
//
// Arrays are row-major, outer_size x norm_size; elements are float, or bfloat16 with -DBF16; weights are elements,
// statistics and their gradients float. The block is a power of two, at most 1024 threads. The grid of a forward is
// outer_size. A backward's is any number of parts: each block leaves its columns' sums in its own part of the workspace,
// parts x norm_size floats for every gradient of a weight, and column_sums adds the parts in order. No atomics: the same
// bits every time.

#ifdef BF16
struct Element {
  unsigned short bits;
};
__device__ inline float load(Element value) { return __uint_as_float((unsigned)value.bits << 16); }
__device__ inline Element store(float value) {  // to nearest even; values are finite here
  unsigned bits = __float_as_uint(value);
  return {(unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
#else
typedef float Element;
__device__ inline float load(Element value) { return value; }
__device__ inline Element store(float value) { return value; }
#endif

// The sum over the block, in every thread.
__device__ float block_sum(float value) {
  __shared__ float values[1024];
  values[threadIdx.x] = value;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
  }
  __syncthreads();
  float sum = values[0];
  __syncthreads();  // before the next sum writes
  return sum;
}

// mean_out and rstd_out may be null.
extern "C" __global__ void layer_norm_forward(const Element* input, const Element* gamma, const Element* beta,
                                              Element* output, float* mean_out, float* rstd_out, int outer_size,
                                              int norm_size, float eps) {
  long long row = blockIdx.x;
  if (row >= outer_size) return;
  const Element* x = input + row * norm_size;
  Element* y = output + row * norm_size;
  float sum = 0;
  for (int j = threadIdx.x; j < norm_size; j += blockDim.x) sum += load(x[j]);
  float mean = block_sum(sum) / norm_size;
  float squares = 0;
  for (int j = threadIdx.x; j < norm_size; j += blockDim.x) {
    float distance = load(x[j]) - mean;
    squares += distance * distance;
  }
  float rstd = 1 / sqrtf(block_sum(squares) / norm_size + eps);
  for (int j = threadIdx.x; j < norm_size; j += blockDim.x)
    y[j] = store((load(x[j]) - mean) * rstd * load(gamma[j]) + load(beta[j]));
  if (threadIdx.x == 0 && mean_out) mean_out[row] = mean;
  if (threadIdx.x == 0 && rstd_out) rstd_out[row] = rstd;
}

extern "C" __global__ void rms_norm_forward(const Element* input, const Element* gamma, Element* output,
                                            float* rstd_out, int outer_size, int norm_size, float eps) {
  long long row = blockIdx.x;
  if (row >= outer_size) return;
  const Element* x = input + row * norm_size;
  Element* y = output + row * norm_size;
  float squares = 0;
  for (int j = threadIdx.x; j < norm_size; j += blockDim.x) squares += load(x[j]) * load(x[j]);
  float rstd = 1 / sqrtf(block_sum(squares) / norm_size + eps);
  for (int j = threadIdx.x; j < norm_size; j += blockDim.x) y[j] = store(load(x[j]) * rstd * load(gamma[j]));
  if (threadIdx.x == 0 && rstd_out) rstd_out[row] = rstd;
}

// The workspace holds 2 x gridDim.x x norm_size floats: the parts of gamma's gradient, then those of beta's.
extern "C" __global__ void layer_norm_backward(const Element* grad_output, const Element* input, const Element* gamma,
                                               const float* mean, const float* rstd, Element* grad_input,
                                               float* workspace, int outer_size, int norm_size) {
  float* gamma_part = workspace + (long long)blockIdx.x * norm_size;
  float* beta_part = workspace + ((long long)gridDim.x + blockIdx.x) * norm_size;
  for (int j = threadIdx.x; j < norm_size; j += blockDim.x) gamma_part[j] = beta_part[j] = 0;
  for (long long row = blockIdx.x; row < outer_size; row += gridDim.x) {
    const Element* x = input + row * norm_size;
    const Element* dy = grad_output + row * norm_size;
    Element* dx = grad_input + row * norm_size;
    float sum = 0, products = 0;
    for (int j = threadIdx.x; j < norm_size; j += blockDim.x) {
      float normalised = (load(x[j]) - mean[row]) * rstd[row], g = load(dy[j]) * load(gamma[j]);
      sum += g;
      products += g * normalised;
      gamma_part[j] += load(dy[j]) * normalised;  // always by the same thread, in order of the rows
      beta_part[j] += load(dy[j]);
    }
    float mean_g = block_sum(sum) / norm_size, mean_product = block_sum(products) / norm_size;
    for (int j = threadIdx.x; j < norm_size; j += blockDim.x) {
      float normalised = (load(x[j]) - mean[row]) * rstd[row], g = load(dy[j]) * load(gamma[j]);
      dx[j] = store(rstd[row] * (g - mean_g - normalised * mean_product));
    }
  }
}

// The workspace holds gridDim.x x norm_size floats.
extern "C" __global__ void rms_norm_backward(const Element* grad_output, const Element* input, const Element* gamma,
                                             const float* rstd, Element* grad_input, float* workspace, int outer_size,
                                             int norm_size) {
  float* gamma_part = workspace + (long long)blockIdx.x * norm_size;
  for (int j = threadIdx.x; j < norm_size; j += blockDim.x) gamma_part[j] = 0;
  for (long long row = blockIdx.x; row < outer_size; row += gridDim.x) {
    const Element* x = input + row * norm_size;
    const Element* dy = grad_output + row * norm_size;
    Element* dx = grad_input + row * norm_size;
    float products = 0;
    for (int j = threadIdx.x; j < norm_size; j += blockDim.x) {
      float normalised = load(x[j]) * rstd[row];
      products += load(dy[j]) * load(gamma[j]) * normalised;
      gamma_part[j] += load(dy[j]) * normalised;
    }
    float mean_product = block_sum(products) / norm_size;
    for (int j = threadIdx.x; j < norm_size; j += blockDim.x)
      dx[j] = store(rstd[row] * (load(dy[j]) * load(gamma[j]) - load(x[j]) * rstd[row] * mean_product));
  }
}

// The second stage: result[j] is the sum of parts[0][j], parts[1][j] …, one thread a column.
extern "C" __global__ void column_sums(const float* parts, float* result, int part_count, int norm_size) {
  long long j = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= norm_size) return;
  float sum = 0;
  for (long long part = 0; part < part_count; ++part) sum += parts[part * norm_size + j];
  result[j] = sum;
}
