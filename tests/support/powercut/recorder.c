/* Records, to be preloaded, every call that changes what lies under one directory.

   A process that has this library preloaded calls powercut_start(root, trace), does its work, and
   calls powercut_stop(). The trace then has one record for each call that succeeded, in the order
   in which the calls took effect: one lock is held around call and record.

       record := op u1, inode u8, at u8, length of path u4, of other u4, of data u8, path, other, data
                                                                                    little-endian

   Files and directories are told apart by inode: a new one is announced by 'c' or 'd'. What cannot
   be recorded exactly becomes '?', which the reader refuses. SQLite's "-shm" is left out: it is
   shared memory, and SQLite itself does not count on it after a crash.
   REQUIRES: one process, Linux and glibc, paths without links and "..". */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_FILES 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static FILE *trace; /* NULL: nothing is recorded */
static char recorded[MAX_FILES]; /* by descriptor: whether it was opened under the root */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void record(char op, uint64_t inode, uint64_t at, const char *path, const char *other,
                   const void *data, uint64_t size) {
    int error = errno;
    uint32_t lengths[2] = {strlen(path), strlen(other)};
    fputc(op, trace);
    fwrite(&inode, 8, 1, trace);
    fwrite(&at, 8, 1, trace);
    fwrite(lengths, 4, 2, trace);
    fwrite(&size, 8, 1, trace);
    fwrite(path, 1, lengths[0], trace);
    fwrite(other, 1, lengths[1], trace);
    if (size) fwrite(data, 1, size, trace);
    errno = error;
}

static uint64_t inode_of(int file) {
    struct stat found;
    return fstat(file, &found) ? 0 : found.st_ino;
}

/* Whether a call on `path` is to be recorded; `out` gets the absolute path. */
static int under_root(int directory, const char *path, char *out) {
    if (!trace || !path) return 0;
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
    } else {
        char base[PATH_MAX] = "", link[64];
        if (directory == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
            ssize_t size = readlink(link, base, sizeof base - 1);
            if (size < 0) return 0;
            base[size] = 0;
        }
        if (snprintf(out, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    size_t size = strlen(root), end = strlen(out);
    if (strncmp(out, root, size) || (out[size] && out[size] != '/')) return 0;
    return !(end > 4 && !strcmp(out + end - 4, "-shm"));
}

static int is_recorded(int file) {
    return trace && file >= 0 && file < MAX_FILES && recorded[file];
}

static void unknown(int file, const char *call) {
    pthread_mutex_lock(&lock);
    if (is_recorded(file)) record('?', inode_of(file), 0, call, "", NULL, 0);
    pthread_mutex_unlock(&lock);
}

/* For the workload -------------------------------------------------------------------------- */

int powercut_start(const char *directory, const char *path) {
    memset(recorded, 0, sizeof recorded);
    snprintf(root, sizeof root, "%s", directory);
    trace = fopen(path, "wb");
    return trace ? 0 : errno;
}

int powercut_stop(void) {
    FILE *file = trace;
    trace = NULL;
    return file ? fclose(file) : 0;
}

/* A record of the caller's own. */
void powercut_note(char op, uint64_t inode, const char *path, const void *data, uint64_t size) {
    pthread_mutex_lock(&lock);
    if (trace) record(op, inode, 0, path, "", data, size);
    pthread_mutex_unlock(&lock);
}

/* Opening and closing ----------------------------------------------------------------------- */

static int opened(int directory, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    struct stat before;
    pthread_mutex_lock(&lock);
    int counts = under_root(directory, path, full);
    int there = counts && !stat(full, &before);
    int file = REAL(openat)(directory, path, flags, mode);
    if (file >= 0 && file < MAX_FILES) recorded[file] = counts;
    if (file >= 0 && counts) {
        if ((flags & O_TMPFILE) == O_TMPFILE) record('?', 0, 0, "O_TMPFILE", "", NULL, 0);
        else if (!there) record('c', inode_of(file), 0, full, "", NULL, 0);
        else if (flags & O_TRUNC) record('t', inode_of(file), 0, full, "", NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return file;
}

#define MODE_OF(flags, mode)                                    \
    mode_t mode = 0;                                            \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                      \
        va_list list;                                           \
        va_start(list, flags);                                  \
        mode = va_arg(list, mode_t);                            \
        va_end(list);                                           \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opened(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opened(AT_FDCWD, path, flags, mode);
}
int openat(int directory, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opened(directory, path, flags, mode);
}
int openat64(int directory, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opened(directory, path, flags, mode);
}
int __open_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __openat_2(int at, const char *path, int flags) { return opened(at, path, flags, 0); }
int __openat64_2(int at, const char *path, int flags) { return opened(at, path, flags, 0); }
int creat(const char *path, mode_t mode) {
    return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

int close(int file) {
    pthread_mutex_lock(&lock);
    if (file >= 0 && file < MAX_FILES) recorded[file] = 0;
    int result = REAL(close)(file);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Contents ---------------------------------------------------------------------------------- */

ssize_t write(int file, const void *data, size_t size) {
    if (!is_recorded(file)) return REAL(write)(file, data, size);
    pthread_mutex_lock(&lock);
    struct stat found;
    int appends = fcntl(file, F_GETFL) & O_APPEND;
    off_t at = appends && !fstat(file, &found) ? found.st_size : lseek(file, 0, SEEK_CUR);
    ssize_t written = REAL(write)(file, data, size);
    if (written > 0) record('w', inode_of(file), at, "", "", data, written);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    if (!is_recorded(file)) return REAL(pwrite)(file, data, size, at);
    pthread_mutex_lock(&lock);
    ssize_t written = REAL(pwrite)(file, data, size, at);
    if (written > 0) record('w', inode_of(file), at, "", "", data, written);
    pthread_mutex_unlock(&lock);
    return written;
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    return pwrite(file, data, size, at);
}

int ftruncate(int file, off_t size) {
    if (!is_recorded(file)) return REAL(ftruncate)(file, size);
    pthread_mutex_lock(&lock);
    int result = REAL(ftruncate)(file, size);
    if (!result) record('t', inode_of(file), size, "", "", NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

static int synced(int file, int result) {
    if (!result && is_recorded(file)) record('s', inode_of(file), 0, "", "", NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int fsync(int file) {
    pthread_mutex_lock(&lock);
    return synced(file, REAL(fsync)(file));
}
int fdatasync(int file) {
    pthread_mutex_lock(&lock);
    return synced(file, REAL(fdatasync)(file));
}

/* Calls that nothing under test makes: a trace that has one is refused. */

#define REFUSED(result, name, file, parameters, ...)                              \
    result name parameters {                                                      \
        unknown(file, #name);                                                     \
        return ((result(*) parameters)dlsym(RTLD_NEXT, #name))(__VA_ARGS__);      \
    }
#define PARTS (int file, const struct iovec *parts, int count, off_t at)
#define COPY (int file, int from, off_t *at, size_t size)

REFUSED(ssize_t, writev, file, (int file, const struct iovec *parts, int count), file, parts, count)
REFUSED(ssize_t, pwritev, file, PARTS, file, parts, count, at)
REFUSED(ssize_t, pwritev64, file, PARTS, file, parts, count, at)
REFUSED(int, fallocate, file, (int file, int mode, off_t at, off_t size), file, mode, at, size)
REFUSED(int, fallocate64, file, (int file, int mode, off_t at, off_t size), file, mode, at, size)
REFUSED(int, posix_fallocate, file, (int file, off_t at, off_t size), file, at, size)
REFUSED(int, posix_fallocate64, file, (int file, off_t at, off_t size), file, at, size)
REFUSED(ssize_t, sendfile, file, COPY, file, from, at, size)
REFUSED(ssize_t, sendfile64, file, COPY, file, from, at, size)
REFUSED(ssize_t, copy_file_range, file,
        (int in, off64_t *from, int file, off64_t *to, size_t size, unsigned flags),
        in, from, file, to, size, flags)

void *mmap(void *address, size_t size, int access, int flags, int file, off_t at) {
    if (file >= 0 && (flags & MAP_SHARED) && (access & PROT_WRITE)) unknown(file, "mmap");
    return REAL(mmap)(address, size, access, flags, file, at);
}

/* Names ------------------------------------------------------------------------------------- */

static int made(int directory, const char *path, mode_t mode) {
    char full[PATH_MAX];
    struct stat found;
    pthread_mutex_lock(&lock);
    int counts = under_root(directory, path, full);
    int result = REAL(mkdirat)(directory, path, mode);
    if (!result && counts && !stat(full, &found)) record('d', found.st_ino, 0, full, "", NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int mkdir(const char *path, mode_t mode) { return made(AT_FDCWD, path, mode); }
int mkdirat(int directory, const char *path, mode_t mode) { return made(directory, path, mode); }

static int removed(int directory, const char *path, int flags) {
    char full[PATH_MAX];
    pthread_mutex_lock(&lock);
    int counts = under_root(directory, path, full);
    int result = REAL(unlinkat)(directory, path, flags);
    if (!result && counts) record('u', 0, 0, full, "", NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int directory, const char *path, int flags) { return removed(directory, path, flags); }

static int renamed(int from, const char *path, int to, const char *other, unsigned flags) {
    char old[PATH_MAX], new[PATH_MAX];
    pthread_mutex_lock(&lock);
    int counts = under_root(from, path, old) + under_root(to, other, new);
    int result = REAL(renameat2)(from, path, to, other, flags);
    if (!result && counts) /* into the root, out of it, or exchanged: not known */
        record(counts == 2 && !(flags & ~RENAME_NOREPLACE) ? 'r' : '?', 0, 0, old, new, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int rename(const char *path, const char *other) {
    return renamed(AT_FDCWD, path, AT_FDCWD, other, 0);
}
int renameat(int from, const char *path, int to, const char *other) {
    return renamed(from, path, to, other, 0);
}
int renameat2(int from, const char *path, int to, const char *other, unsigned flags) {
    return renamed(from, path, to, other, flags);
}

static int linked(int from, const char *path, int to, const char *other, int flags) {
    char old[PATH_MAX], new[PATH_MAX];
    pthread_mutex_lock(&lock);
    int counts = under_root(from, path, old) + under_root(to, other, new);
    int result = REAL(linkat)(from, path, to, other, flags);
    if (!result && counts) record(counts == 2 ? 'l' : '?', 0, 0, old, new, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int link(const char *path, const char *other) {
    return linked(AT_FDCWD, path, AT_FDCWD, other, 0);
}
int linkat(int from, const char *path, int to, const char *other, int flags) {
    return linked(from, path, to, other, flags);
}
int symlinkat(const char *target, int directory, const char *path) {
    char full[PATH_MAX];
    pthread_mutex_lock(&lock);
    if (under_root(directory, path, full)) record('?', 0, 0, "symlink", "", NULL, 0);
    pthread_mutex_unlock(&lock);
    return REAL(symlinkat)(target, directory, path);
}
int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }
