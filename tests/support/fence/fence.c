/* Memory for arrays, each beside a page that cannot be touched: see __init__.py.
 *
 * One reservation of addresses, of which nothing may be touched. An array gets the next pages of
 * it and, behind them, one page that stays as it is; so there is such a page on either side.
 * Addresses are never used twice: what reads an array after it was freed ends there, too.
 *
 * Every mapping counts against vm.max_map_count. When half of what that allows is in use, or an
 * array is very large, it gets ordinary memory and is counted as unfenced.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGEST_ROOM (16ULL << 40)
#define SMALLEST_ROOM (64ULL << 30)
#define LARGEST_ARRAY (256ULL << 20)
#define FILLED (1ULL << 20) /* bytes at most: more would touch pages that nobody asked for */
#define FREED (1ULL << 63)

static size_t page;
static char *base, *next, *end;
static uint64_t *sizes; /* by number of an array's first page: bytes + 1, and FREED */
static int at_the_end;  /* arrays end at the page that cannot be touched, or begin behind it */
static long live, most_live, fenced, unfenced;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void lock(void) { pthread_mutex_lock(&turn); }
static void unlock(void) { pthread_mutex_unlock(&turn); }

static int is_ours(void *p) { return (char *)p >= base && (char *)p < end; }
static size_t number_of(void *p) { return ((char *)p - base) / page; }
static size_t pages_of(size_t n) { return (n + page - 1) / page * page; }

/* NULL if the array is to have ordinary memory. */
static char *give(size_t n) {
  size_t pages = pages_of(n ? n : 1);
  lock();
  int fits = live < most_live && n <= LARGEST_ARRAY && pages + page <= (size_t)(end - next);
  char *p = next;
  if (fits && mprotect(p, pages, PROT_READ | PROT_WRITE) == 0) {
    next += pages + page;
    live++, fenced++;
    sizes[number_of(p)] = n + 1;
  } else {
    unfenced++;
    p = NULL;
  }
  unlock();
  /* To the byte: an array's size is a multiple of its alignment, and so is a page's. */
  return p && at_the_end ? p + pages - (n ? n : 1) : p;
}

static void *filled(char *p, size_t n) {
  if (p && n <= FILLED) memset(p, 0xA5, n);
  return p;
}

static void take_back(void *p) {
  size_t number = number_of(p), n = sizes[number] - 1;
  sizes[number] |= FREED;
  mmap(base + number * page, pages_of(n ? n : 1), PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  lock();
  live--;
  unlock();
}

/* -- NumPy: PyDataMem_Handler, version 1 -- */

typedef struct {
  void *ctx;
  void *(*malloc)(void *, size_t);
  void *(*calloc)(void *, size_t, size_t);
  void *(*realloc)(void *, void *, size_t);
  void (*free)(void *, void *, size_t);
} Allocator;

typedef struct {
  char name[127];
  uint8_t version;
  Allocator allocator;
} Handler;

static Allocator numpys;

static void *numpy_malloc(void *ctx, size_t n) {
  char *p = give(n);
  return p ? filled(p, n) : numpys.malloc(ctx, n);
}

static void *numpy_calloc(void *ctx, size_t n, size_t size) {
  char *p = size && n > LARGEST_ARRAY / size ? NULL : give(n * size);
  return p ? p : numpys.calloc(ctx, n, size);
}

static void numpy_free(void *ctx, void *p, size_t n) {
  if (is_ours(p)) take_back(p);
  else numpys.free(ctx, p, n);
}

static void *numpy_realloc(void *ctx, void *p, size_t n) {
  if (p && !is_ours(p)) return numpys.realloc(ctx, p, n);
  void *q = numpy_malloc(ctx, n);
  if (p && q) {
    size_t had = sizes[number_of(p)] - 1;
    memcpy(q, p, had < n ? had : n);
    take_back(p);
  }
  return q;
}

/* -- Numba: what compiled code calls for the memory of an array -- */

typedef void *(*Manage)(void *, void (*)(void *)); /* NRT_api_functions.manage_memory */
static Manage manage;
static void *(*numbas)(size_t, unsigned);

void *fence_numba_alloc(size_t n, unsigned align) {
  char *p = filled(give(n), n);
  return p ? manage(p, take_back) : numbas(n, align);
}

/* -- what a fault was -- */

static struct sigaction before;
static int told; /* stderr as it was at first: pytest takes it away */

static void tell(int signal, siginfo_t *info, void *context) {
  char *at = info->si_addr, line[300];
  int n = 0;
  if (is_ours(at)) {
    size_t number = number_of(at), first = number;
    while (first && !sizes[first]) first--;
    size_t bytes = (sizes[first] & ~FREED) - 1, pages = pages_of(bytes ? bytes : 1);
    char *begin = base + first * page;
    if (at < begin + pages)
      n = snprintf(line, sizeof line, "fence: an array of %zu bytes was touched after it was freed\n",
                   bytes);
    else if (!at_the_end && sizes[number + 1])
      n = snprintf(line, sizeof line, "fence: %zu bytes before an array of %zu bytes were touched\n",
                   (size_t)(base + (number + 1) * page - at), (size_t)((sizes[number + 1] & ~FREED) - 1));
    else
      n = snprintf(line, sizeof line, "fence: byte %zu of an array of %zu bytes was touched\n",
                   (size_t)(at - begin) - (at_the_end ? pages - bytes : 0), bytes);
  } else {
    /* the processor does not say where, if an instruction needs more alignment than an array has */
    n = snprintf(line, sizeof line, "fence: %p was touched, which is in no array%s\n", (void *)at,
                 at ? "" : ", or one was not aligned");
  }
  if (write(told, line, n)) {}
  sigaction(signal, &before, NULL); /* the instruction runs again, and then that is called */
}

/* -- setting it up: 0, or a reason -- */

const char *fence_begin(int end_at_page) {
  page = sysconf(_SC_PAGESIZE);
  at_the_end = end_at_page;
  told = dup(2);
  FILE *limit = fopen("/proc/sys/vm/max_map_count", "r");
  if (!limit || fscanf(limit, "%ld", &most_live) != 1) return "vm.max_map_count cannot be read";
  fclose(limit);
  most_live = most_live * 2 / 5; /* an array in use takes two mappings */
  size_t room = LARGEST_ROOM;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  for (;; room /= 2) {
    if (room < SMALLEST_ROOM) return "addresses cannot be reserved";
    base = mmap(NULL, room, PROT_NONE, flags, -1, 0);
    if (base == MAP_FAILED) continue;
    sizes = mmap(NULL, room / page * sizeof *sizes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (sizes != MAP_FAILED) break;
    munmap(base, room);
  }
  next = base + page;
  end = base + room;
  pthread_atfork(lock, unlock, unlock);
  struct sigaction telling = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  return sigaction(SIGSEGV, &telling, &before) ? "no handler for SIGSEGV" : NULL;
}

void fence_numpy(Handler *handler) {
  numpys = handler->allocator;
  handler->allocator = (Allocator){numpys.ctx, numpy_malloc, numpy_calloc, numpy_realloc, numpy_free};
}

void fence_numba(Manage manage_memory, void *(*alloc_aligned)(size_t, unsigned)) {
  manage = manage_memory;
  numbas = alloc_aligned;
}

long fence_fenced(void) { return fenced; }
long fence_unfenced(void) { return unfenced; }
