/*
 * A disk that fails on request, for the fault tests: loaded into a gateway by LD_PRELOAD, it
 * stands between SQLite and the files of the state database. It touches no other file.
 *
 * TIDINGS_DISK_FOLDER names a folder with
 *   fault    one line, "<call> <nth> <fault> <tag>", read at every call; none: all is well.
 *            A line that was not there before starts counting anew.
 *              write N short    the nth write takes half of what it is given
 *              write N full     the nth write and all behind it find no room
 *              write N fills    the same, but the nth still takes half
 *              write N broken   the nth write fails
 *              read N broken    the nth read fails
 *              sync N broken    the nth fsync fails; sync-log and sync-database count those
 *                               of one kind of file
 *   journal  what the disk was asked for since the fault, one call a line
 *   undo     where it exists: what every write replaced, until it has been synced; from this
 *            a test takes back what a power cut would have lost (see src/disk/power.rs)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define LINE_BYTES 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char rule[LINE_BYTES]; /* the line that is being counted for */
static long calls;            /* how many calls it has seen */
static int struck;            /* whether its fault has happened */

/* The calls themselves, past this file. */
static ssize_t raw_write(int fd, const void *from, size_t size) {
  return syscall(SYS_write, fd, from, size);
}

static ssize_t raw_read(int fd, void *into, size_t size) { return syscall(SYS_read, fd, into, size); }

static ssize_t raw_pread(int fd, void *into, size_t size, off_t at) {
  return syscall(SYS_pread64, fd, into, size, at);
}

static ssize_t raw_pwrite(int fd, const void *from, size_t size, off_t at) {
  return syscall(SYS_pwrite64, fd, from, size, at);
}

/* The database file behind a descriptor: its name, or NULL for any other file. */
static const char *database_file(int fd, char path[PATH_BYTES]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, PATH_BYTES - 1);
  if (size <= 0) return NULL;
  path[size] = 0;
  char *name = strrchr(path, '/');
  if (name == NULL || strncmp(name + 1, "state.sqlite", 12) != 0) return NULL;
  return name + 1;
}

static int is_shared_memory(const char *name) {
  return strcmp(name, "state.sqlite-shm") == 0;
}

static int in_folder(const char *name, int flags) {
  const char *folder = getenv("TIDINGS_DISK_FOLDER");
  char path[PATH_BYTES];
  if (folder == NULL) return -1;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return open(path, flags, 0600);
}

static void note(const char *call, const char *name) {
  char line[LINE_BYTES];
  int fd = in_folder("journal", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC);
  if (fd < 0) return;
  int size = snprintf(line, sizeof line, "%s %s\n", call, name);
  raw_write(fd, line, (size_t)size);
  close(fd);
}

enum fault { NONE, SHORT, FULL, BROKEN };

/* What is to happen to this call. */
static enum fault judge(const char *call, const char *name) {
  char line[LINE_BYTES] = "";
  char wanted[16], fault[16];
  long nth;
  int fd = in_folder("fault", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    ssize_t size = raw_read(fd, line, sizeof line - 1);
    line[size > 0 ? size : 0] = 0;
    close(fd);
  }
  if (strcmp(line, rule) != 0) {
    strcpy(rule, line);
    calls = 0;
    struck = 0;
  }
  if (sscanf(rule, "%15s %ld %15s", wanted, &nth, fault) != 3) return NONE;
  if (struck && strcmp(call, "read") != 0) note(call, name);
  if (strncmp(call, wanted, strlen(wanted)) != 0) return NONE;
  int lasts = strcmp(fault, "full") == 0 || strcmp(fault, "fills") == 0;
  if (is_shared_memory(name)) return struck && lasts ? FULL : NONE;
  calls++;
  if (calls < nth || (calls > nth && !lasts)) return NONE;
  if (!struck) note(fault, name);
  struck = 1;
  if (strcmp(fault, "full") == 0 || calls > nth) return FULL;
  return strcmp(fault, "broken") == 0 ? BROKEN : SHORT;
}

/* ---- what a power cut would lose ------------------------------------------------------ */

struct record {
  uint8_t kind; /* 'W' a write, 'T' a truncation, 'S' a sync that has ended */
  uint8_t reserved[3];
  uint32_t path_size;
  uint64_t at;       /* where it writes; how long it leaves the file; what it covers */
  uint64_t old_size; /* of the file */
  uint64_t old_bytes;
  uint64_t new_bytes;
} __attribute__((packed));

static uint64_t undo_at; /* how long the undo file is */

static void keep(const struct record *record, const char *path, const void *old, const void *new) {
  int fd = in_folder("undo", O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return;
  size_t size = sizeof *record + record->path_size + record->old_bytes + record->new_bytes;
  char *all = malloc(size), *end = all;
  end = mempcpy(end, record, sizeof *record);
  end = mempcpy(end, path, record->path_size);
  end = mempcpy(end, old, record->old_bytes);
  mempcpy(end, new, record->new_bytes);
  if (raw_write(fd, all, size) != (ssize_t)size) abort();
  undo_at += size;
  free(all);
  close(fd);
}

static int keeps_undo(void) {
  int fd = in_folder("undo", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  close(fd);
  return 1;
}

/* Keeps the bytes from `at` on that a write of `size` bytes, or a truncation, replaces. */
static void keep_old(uint8_t kind, int fd, const char *path, uint64_t at, const void *new,
                     size_t size) {
  struct stat file;
  if (!keeps_undo() || fstat(fd, &file) != 0) return;
  uint64_t end = kind == 'T' ? (uint64_t)file.st_size : at + size;
  if (end > (uint64_t)file.st_size) end = (uint64_t)file.st_size;
  size_t old_size = end > at ? end - at : 0;
  char *old = malloc(old_size + 1);
  if (raw_pread(fd, old, old_size, (off_t)at) != (ssize_t)old_size) abort();
  struct record record = {.kind = kind,
                          .path_size = (uint32_t)strlen(path),
                          .at = at,
                          .old_size = (uint64_t)file.st_size,
                          .old_bytes = old_size,
                          .new_bytes = kind == 'T' ? 0 : size};
  keep(&record, path, old, new);
  free(old);
}

/* ---- the calls ------------------------------------------------------------------------ */

static ssize_t write_at(int fd, const void *from, size_t size, off_t at, int moves) {
  char path[PATH_BYTES];
  const char *name = database_file(fd, path);
  if (name == NULL) {
    return moves ? raw_write(fd, from, size) : raw_pwrite(fd, from, size, at);
  }
  pthread_mutex_lock(&lock);
  enum fault fault = judge("write", name);
  ssize_t wrote = -1;
  if (fault == FULL || fault == BROKEN) {
    errno = fault == FULL ? ENOSPC : EIO;
  } else {
    if (fault == SHORT && size > 1) size /= 2;
    off_t where = moves ? lseek(fd, 0, SEEK_CUR) : at;
    if (!is_shared_memory(name)) keep_old('W', fd, path, (uint64_t)where, from, size);
    wrote = moves ? raw_write(fd, from, size) : raw_pwrite(fd, from, size, at);
  }
  int error = errno;
  pthread_mutex_unlock(&lock);
  errno = error;
  return wrote;
}

ssize_t write(int fd, const void *from, size_t size) { return write_at(fd, from, size, 0, 1); }

ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
  return write_at(fd, from, size, at, 0);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
  return write_at(fd, from, size, at, 0);
}

/* Reading is no business of the journal: it changes nothing. */
static int read_fails(int fd) {
  char path[PATH_BYTES];
  const char *name = database_file(fd, path);
  if (name == NULL) return 0;
  pthread_mutex_lock(&lock);
  enum fault fault = judge("read", name);
  pthread_mutex_unlock(&lock);
  if (fault == BROKEN) errno = EIO;
  return fault == BROKEN;
}

ssize_t read(int fd, void *into, size_t size) {
  return read_fails(fd) ? -1 : raw_read(fd, into, size);
}

ssize_t pread(int fd, void *into, size_t size, off_t at) {
  return read_fails(fd) ? -1 : raw_pread(fd, into, size, at);
}

ssize_t pread64(int fd, void *into, size_t size, off64_t at) {
  return read_fails(fd) ? -1 : raw_pread(fd, into, size, at);
}

static int sync_file(int fd, int call) {
  char path[PATH_BYTES];
  const char *name = database_file(fd, path);
  if (name == NULL) return (int)syscall(call, fd);
  pthread_mutex_lock(&lock);
  const char *call_name = strcmp(name, "state.sqlite") == 0 ? "sync-database" : "sync-log";
  enum fault fault = judge(call_name, name);
  uint64_t covers = undo_at;
  pthread_mutex_unlock(&lock);
  if (fault == BROKEN) {
    errno = EIO;
    return -1;
  }
  int ended = (int)syscall(call, fd);
  if (ended == 0) {
    struct record record = {.kind = 'S', .path_size = (uint32_t)strlen(path), .at = covers};
    pthread_mutex_lock(&lock);
    keep(&record, path, "", "");
    pthread_mutex_unlock(&lock);
  }
  return ended;
}

int fsync(int fd) { return sync_file(fd, SYS_fsync); }

int fdatasync(int fd) { return sync_file(fd, SYS_fdatasync); }

static int truncate_file(int fd, off_t size) {
  char path[PATH_BYTES];
  const char *name = database_file(fd, path);
  if (name == NULL || is_shared_memory(name)) return (int)syscall(SYS_ftruncate, fd, size);
  pthread_mutex_lock(&lock);
  judge("truncate", name);
  keep_old('T', fd, path, (uint64_t)size, "", 0);
  int ended = (int)syscall(SYS_ftruncate, fd, size);
  int error = errno;
  pthread_mutex_unlock(&lock);
  errno = error;
  return ended;
}

int ftruncate(int fd, off_t size) { return truncate_file(fd, size); }

int ftruncate64(int fd, off64_t size) { return truncate_file(fd, size); }

/* A file that is removed is noted; nothing keeps it from being removed. */
int unlink(const char *path) {
  const char *name = strrchr(path, '/');
  name = name == NULL ? path : name + 1;
  if (strncmp(name, "state.sqlite", 12) == 0) {
    pthread_mutex_lock(&lock);
    judge("unlink", name);
    pthread_mutex_unlock(&lock);
  }
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
