/* Runs what `trireme emit rms_norm --backward --target x86 --cols 96 --rows 40 --c-header` wrote, and checks it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rms_norm_backward.h"

#define COLUMNS RMS_NORM_BACKWARD_COLUMNS
#define ROWS RMS_NORM_BACKWARD_ROWS

int main(void) {
  static float dy[ROWS][COLUMNS], x[ROWS][COLUMNS], gamma[COLUMNS], rstd[ROWS], dx[ROWS][COLUMNS], dgamma[COLUMNS];
  for (int i = 0; i < ROWS; ++i) {
    rstd[i] = 1 + (float)i / ROWS;
    for (int j = 0; j < COLUMNS; ++j) {
      dy[i][j] = (float)((i * 7 + j * 3) % 11 - 5);
      x[i][j] = (float)((i + j) % 5 - 2);
      gamma[j] = (float)(j % 3);
    }
  }
  size_t bytes = sizeof rms_norm_backward_x86;
  unsigned char* code = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code, rms_norm_backward_x86, bytes);
  if (mprotect(code, bytes, PROT_READ | PROT_EXEC) != 0) return 77;

  void* workspace = aligned_alloc(64, (RMS_NORM_BACKWARD_WORKSPACE_BYTES + 127) / 64 * 64);
  void* scratch = aligned_alloc(64, (RMS_NORM_BACKWARD_SCRATCH_BYTES + 127) / 64 * 64);
  uint64_t args[RMS_NORM_BACKWARD_ARGS] = {0};
#define SET(name, value) args[RMS_NORM_BACKWARD_ARG_##name] = (uint64_t)(value)
#define SET_ADDRESS(name, value) SET(name, (uintptr_t)(value))
#ifdef RMS_NORM_BACKWARD_ARG_n
  SET(n, COLUMNS);
#endif
  SET_ADDRESS(dy, dy), SET(dy_stride, COLUMNS);
  SET_ADDRESS(x, x), SET(x_stride, COLUMNS);
  SET_ADDRESS(gamma, gamma);
  SET_ADDRESS(rstd, rstd), SET(rstd_stride, 1);
  SET_ADDRESS(dx, dx), SET(dx_stride, COLUMNS);
  SET_ADDRESS(dgamma, dgamma);
  SET(row_block, RMS_NORM_BACKWARD_ROW_BLOCK);
  SET(row_blocks, RMS_NORM_BACKWARD_ROW_BLOCKS);
  SET_ADDRESS(workspace, workspace);
#ifdef RMS_NORM_BACKWARD_ARG_workspace_stride
  SET(workspace_stride, RMS_NORM_BACKWARD_WORKSPACE_STRIDE);
#endif
#ifdef RMS_NORM_BACKWARD_ARG_scratch
  SET_ADDRESS(scratch, scratch);
#else
  (void)scratch;
#endif
  rms_norm_backward_entry *rows, *columns;
  unsigned char* second = code + RMS_NORM_BACKWARD_COLUMNS_ENTRY;
  memcpy(&rows, &code, sizeof rows);
  memcpy(&columns, &second, sizeof columns);
  rows(args, 0, ROWS, ROWS);
  columns(args, 0, COLUMNS, ROWS);

  for (int j = 0; j < COLUMNS; ++j) {
    double want = 0;
    for (int i = 0; i < ROWS; ++i) want += (double)dy[i][j] * x[i][j] * rstd[i];
    if (fabs(dgamma[j] - want) > 1e-3) return printf("dgamma[%d] is %g, want %g\n", j, dgamma[j], want), 1;
  }
  for (int i = 0; i < ROWS; ++i) {
    double mean = 0;
    for (int j = 0; j < COLUMNS; ++j) mean += (double)dy[i][j] * gamma[j] * x[i][j] * rstd[i] / COLUMNS;
    for (int j = 0; j < COLUMNS; ++j) {
      double want = rstd[i] * (dy[i][j] * gamma[j] - x[i][j] * rstd[i] * mean);
      if (fabs(dx[i][j] - want) > 1e-3) return printf("dx[%d,%d] is %g, want %g\n", i, j, dx[i][j], want), 1;
    }
  }
  puts("right");
  return 0;
}
