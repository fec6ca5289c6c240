/* Clocks that can be set: put before the C library with LD_PRELOAD.
 *
 * TIDINGS_CLOCK_FILE names a file with two numbers, in milliseconds: how far the wall clock and
 * how far the monotonic clock are ahead of the machine's. It is read at each look at a clock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long ahead(int which) {
  const char *path = getenv("TIDINGS_CLOCK_FILE");
  int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return 0;
  char text[64] = {0};
  long length = syscall(SYS_read, file, text, sizeof text - 1);
  syscall(SYS_close, file);
  if (length <= 0) return 0;
  char *rest = text;
  long wall = strtol(rest, &rest, 10);
  long monotonic = strtol(rest, &rest, 10);
  return which == CLOCK_REALTIME ? wall : monotonic;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)) return result;
  long ms = ahead(clock);
  time->tv_sec += ms / 1000;
  time->tv_nsec += ms % 1000 * 1000000;
  if (time->tv_nsec < 0) {
    time->tv_nsec += 1000000000;
    time->tv_sec -= 1;
  } else if (time->tv_nsec >= 1000000000) {
    time->tv_nsec -= 1000000000;
    time->tv_sec += 1;
  }
  return 0;
}
