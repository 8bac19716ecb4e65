"""A double of libcuda.so.1 for cudiag-gpu: memory that is only numbers, kernels that only take time, on a clock of its own.

A copy moves 4000 GB/s, our AdamW 3960, one that is launched as torch's 3200; each launch of the latter, and of what counts steps, takes 2 us more.
Environment: MEASURING_FAILS="cuInit=100 …", which of its functions give an error; MEASURING_FREE_GB, 24.
"""

from drivers import no_real_driver

_SOURCE = r"""
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long u64;

static double now_us;                       /* of the GPU */
static u64 taken, next_address = 0x7f0000000000;
static struct { const char* name; } functions[256];
static int function_count;
static double events[4096];
static int event_count;
static struct { u64 address, bytes; } buffers[4096];

static int result(const char* name) {
  const char* fails = getenv("MEASURING_FAILS");
  const char* at = fails ? strstr(fails, name) : NULL;
  return at && at[strlen(name)] == '=' ? atoi(at + strlen(name) + 1) : 0;
}
static u64 memory(void) { const char* gb = getenv("MEASURING_FREE_GB"); return (u64)(gb ? atoi(gb) : 24) << 30; }

int cuInit(unsigned flags) { return result("cuInit"); }
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
int cuGetErrorName(int error, const char** name) { *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_NO_DEVICE"; return 0; }
int cuGetErrorString(int error, const char** text) { *text = "told by a double"; return 0; }
int cuDeviceGetCount(int* count) { *count = 1; return 0; }
int cuDeviceGet(int* device, int index) { *device = index; return index == 0 ? 0 : 101; }
int cuDeviceGetName(char* name, int size, int device) { snprintf(name, size, "Double 9000"); return 0; }
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) { for (int i = 0; i < 16; ++i) uuid[i] = i; return 0; }
int cuDeviceGetAttribute(int* value, int which, int device) { *value = which == 75 ? 9 : which == 76 ? 0 : 100; return 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = memory(); return 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { *context = (void*)1; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxSetCurrent(void* context) { return 0; }
int cuMemGetInfo_v2(size_t* free, size_t* total) { *total = memory(); *free = memory() - taken; return 0; }
int cuMemAlloc_v2(u64* address, size_t bytes) {
  if (result("cuMemAlloc_v2")) return result("cuMemAlloc_v2");
  if (bytes == 0 || taken + bytes > memory()) return 2;
  for (int i = 0; i < 4096; ++i) {
    if (buffers[i].address == 0) {
      buffers[i].address = *address = next_address;
      buffers[i].bytes = bytes;
      taken += bytes;
      next_address += (bytes + 511) / 512 * 512;
      return 0;
    }
  }
  return 2;
}
int cuMemFree_v2(u64 address) {
  for (int i = 0; i < 4096; ++i) {
    if (buffers[i].address == address) { taken -= buffers[i].bytes; buffers[i].address = 0; return 0; }
  }
  fprintf(stderr, "freed twice\n");
  abort();
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) { *memory = malloc(bytes); return 0; }
int cuMemFreeHost(void* memory) { free(memory); return 0; }
static char* sent;                          /* the newest table */
static int inside(u64 address, u64 bytes) {
  for (int i = 0; i < 4096; ++i) {
    if (buffers[i].address && address >= buffers[i].address && address + bytes <= buffers[i].address + buffers[i].bytes) return 1;
  }
  fprintf(stderr, "%llu bytes at %llx are nobody's\n", bytes, address);
  abort();
}
int cuMemsetD32Async(u64 address, unsigned value, size_t count, void* stream) { inside(address, count * 4); return 0; }
int cuMemcpyHtoDAsync_v2(u64 to, const void* from, size_t bytes, void* stream) {
  inside(to, bytes);
  free(sent);
  memcpy(sent = malloc(bytes), from, bytes);
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  *module = (void*)image;
  return *(const unsigned*)image == 0xba55ed50 ? 0 : 200;      /* a fatbin begins so */
}
int cuModuleUnload(void* module) { return 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  int i = 0;
  while (i < function_count && strcmp(functions[i].name, name)) ++i;
  if (i == function_count) functions[function_count++].name = strdup(name);
  *function = &functions[i];
  return 0;
}
/* Elements of our launch, by the layouts of kernels/adam_table.h. */
static double our_elements(const char* name, const char* table, unsigned blocks) {
  const int pointers = 4 + (strstr(name, "_master") != NULL) + (strstr(name, "_amsgrad") != NULL), most = 4064 / (pointers * 8 + 6);
  double sum = 0;
  if (strstr(name, "_inline")) {
    const unsigned* first = (const unsigned*)(table + pointers * 8 * most);
    const unsigned short* tail = (const unsigned short*)(first + most);
    const unsigned count = tail[most];
    for (unsigned i = 0; i < count; ++i) sum += ((i + 1 < count ? first[i + 1] : blocks) - first[i] - 1) * 1024.0 + tail[i];
    return sum;
  }
  const char* at = sent + pointers * 8;
  for (unsigned next = 0; next != blocks; at += pointers * 8 + 16) {
    const unsigned* record = (const unsigned*)at;
    next = record[1] + 1;
    sum += (record[1] - record[0]) * 1024.0 + record[2];
  }
  return sum;
}
/* Elements of a launch as torch makes it, by the layout of kernels/chunked_table.h. */
static double chunk_elements(const char* table, int large, unsigned blocks) {
  const int tensors = large ? 252 : 36;
  const long long* elements = (const long long*)(table + 4 * 8 * tensors);
  const char* indices = table + 6 * 8 * tensors;
  const int* chunks = (const int*)(indices + (large ? 2 * 2240 : 320));
  double sum = 0;
  for (unsigned b = 0; b < blocks; ++b) {
    const int tensor = large ? ((const unsigned short*)indices)[b] : ((const unsigned char*)indices)[b];
    const long long left = elements[tensor] - 65536LL * chunks[b];
    sum += left < 65536 ? left : 65536;
  }
  return sum;
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** arguments, void** extra) {
  const char* name = *(const char**)function;
  const int wide = strstr(name, "16_") != NULL && !strstr(name, "master") ? 2 : 4;
  if (x == 0 || y != 1 || bx == 0 || bx > 1024 || !arguments || !arguments[0]) return 1;
  if (!strcmp(name, "cudiag_copy")) now_us += x * 256.0 * 16 * 2 / 4000e3;
  else if (!strcmp(name, "cudiag_adam_prepare") || strstr(name, "count_steps")) now_us += 2;
  else if (strstr(name, "cudiag_adam_")) now_us += our_elements(name, arguments[0], x) * 7 * wide / 3960e3;
  else now_us += 2 + chunk_elements(arguments[0], strstr(name, "large") != NULL, x) * 7 * wide / 3200e3;
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) { *stream = (void*)2; return 0; }
int cuStreamSynchronize(void* stream) { return result("cuStreamSynchronize"); }
int cuStreamDestroy_v2(void* stream) { return 0; }
int cuEventCreate(void** event, unsigned flags) { *event = &events[event_count++]; return event_count < 4096 ? 0 : 2; }
int cuEventRecord(void* event, void* stream) { *(double*)event = now_us; return 0; }
int cuEventSynchronize(void* event) { return 0; }
int cuEventElapsedTime(float* ms, void* begin, void* end) { *ms = (*(double*)end - *(double*)begin) / 1e3; return 0; }
int cuEventDestroy_v2(void* event) { return 0; }
"""


def measuring_driver(world):
    """Puts the double first on the world's LD_LIBRARY_PATH."""
    no_real_driver()
    file = world.library("measuring/libcuda.so.1", _SOURCE, "-Wl,-soname,libcuda.so.1", "-w")
    world.set["LD_LIBRARY_PATH"] = str(file.parent)
