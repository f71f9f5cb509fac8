/*
 * A preload that makes a program's calls fail, one at a time: is every failure noticed, told and cleaned up?
 *
 *	WEIR_FAULT=KIND:N   from main() on, the Nth call of a kind fails, once:
 *	                    heap (malloc and its family: no memory), fd (open, pipe, memfd_create, dup, fopen: EMFILE),
 *	                    mmap (ENOMEM), io (read, write, lseek, ftruncate, rename, fsync…: EIO), thread (EAGAIN)
 *	WEIR_FAULT_HIT=FILE is made when it does, and says which library's call it was
 *	WEIR_FAULT_ONLY=NAME only in the program of this name (valgrind starts others before it)
 *	WEIR_SHORT=N        reads and writes move at most N bytes; -N: a random number of 1…N
 *	WEIR_EINTR=N        every Nth read, write, poll is interrupted first
 *	WEIR_PIPE=N         stdin and stdout, where they are pipes, hold N bytes, and cannot be made larger
 *
 * The tools have a malloc of their own, which calls __libc_malloc: that is what is hooked.  With sanitizers the
 * allocator is theirs, and malloc itself is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { FAULT_NONE, FAULT_HEAP, FAULT_FD, FAULT_MMAP, FAULT_IO, FAULT_THREAD };

static struct {
	bool armed;
	enum kind kind;
	long at;
	atomic_long n_calls;
	long short_bytes, eintr_every;
	atomic_long n_interruptible;
	atomic_ulong random;
	bool small_pipes;
	int (*program)(int, char **, char **); /* its main() */
} fault;

static const char *const kind_names[] = {"none", "heap", "fd", "mmap", "io", "thread"};

/* The file name of the object that called, seen from two or three functions further down. */
static const char *caller(void)
{
	void *frames[8];
	int n = backtrace(frames, 8);
	Dl_info at, self, program;

	if (!dladdr((void *)(uintptr_t)caller, &self))
		return "";
	for (int i = 0; i < n; i++) {
		if (!dladdr(frames[i], &at) || at.dli_fbase == self.dli_fbase)
			continue;
		/* The program's own malloc stands between us and who called it. */
		if (at.dli_sname && (strstr(at.dli_sname, "alloc") || strstr(at.dli_sname, "memalign")))
			continue;
		if (i == 2 && fault.kind == FAULT_HEAP && dladdr((void *)(uintptr_t)fault.program, &program) && at.dli_fbase == program.dli_fbase)
			continue;
		const char *base = strrchr(at.dli_fname, '/');
		return base ? base + 1 : at.dli_fname;
	}
	return "";
}

/* Is this the call that fails? */
static bool fails(enum kind kind)
{
	if (!fault.armed || kind != fault.kind || atomic_fetch_add(&fault.n_calls, 1) + 1 != fault.at)
		return false;
	const char *path = getenv("WEIR_FAULT_HIT");
	if (path) {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		const char *who = caller();
		if (fd >= 0 && syscall(SYS_write, fd, who, strlen(who)) >= 0)
			syscall(SYS_close, fd);
	}
	return true;
}

static bool interrupted(void)
{
	return fault.armed && fault.eintr_every && atomic_fetch_add(&fault.n_interruptible, 1) % fault.eintr_every == 0;
}

static size_t shortened(size_t n)
{
	if (!fault.armed || !fault.short_bytes || n < 2)
		return n;
	size_t most = (size_t)labs(fault.short_bytes);
	if (fault.short_bytes < 0) {
		unsigned long z = atomic_fetch_add(&fault.random, 0x9e3779b97f4a7c15u);
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		most = 1 + (z >> 11) % most;
	}
	return n < most ? n : most;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
/* Looked up once: dlsym at every call would be most of the time. */
#define CACHED(name)                                                               \
	static __typeof__(&name) real;                                             \
	if (!real)                                                                 \
		real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* ---- heap ---- */

#ifdef WEIR_SANITIZED

#define HOOK_MALLOC malloc
#define HOOK_CALLOC calloc
#define HOOK_REALLOC realloc
int posix_memalign(void **out, size_t align, size_t n)
{
	CACHED(posix_memalign);
	return fails(FAULT_HEAP) ? ENOMEM : real(out, align, n);
}
void *aligned_alloc(size_t align, size_t n)
{
	CACHED(aligned_alloc);
	return fails(FAULT_HEAP) ? (errno = ENOMEM, NULL) : real(align, n);
}

#else

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
#define HOOK_MALLOC __libc_malloc
#define HOOK_CALLOC __libc_calloc
#define HOOK_REALLOC __libc_realloc
void *__libc_memalign(size_t align, size_t n)
{
	CACHED(__libc_memalign);
	return fails(FAULT_HEAP) ? (errno = ENOMEM, NULL) : real(align, n);
}

#endif

/* dlsym may ask for memory itself: it gets some of this, and never gives it back. */
static char early[16384];
static size_t early_used;
static _Thread_local bool looking_up __attribute__((tls_model("initial-exec")));

static void *early_memory(size_t n)
{
	size_t at = early_used;
	early_used += (n + 63) / 64 * 64;
	return early_used <= sizeof(early) ? early + at : NULL;
}

#define LOOKED_UP(name)                                                            \
	static __typeof__(&name) real;                                             \
	if (!real) {                                                               \
		looking_up = true;                                                 \
		real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                 \
		looking_up = false;                                                \
	}
#define LOOKED_UP2(name) LOOKED_UP(name)

void *HOOK_MALLOC(size_t n)
{
	if (looking_up)
		return early_memory(n);
	LOOKED_UP2(HOOK_MALLOC);
	return fails(FAULT_HEAP) ? (errno = ENOMEM, NULL) : real(n);
}

void *HOOK_CALLOC(size_t n, size_t size)
{
	if (looking_up)
		return early_memory(n * size);
	LOOKED_UP2(HOOK_CALLOC);
	return fails(FAULT_HEAP) ? (errno = ENOMEM, NULL) : real(n, size);
}

void *HOOK_REALLOC(void *p, size_t n)
{
	LOOKED_UP2(HOOK_REALLOC);
	return fails(FAULT_HEAP) ? (errno = ENOMEM, NULL) : real(p, n);
}

/* ---- descriptors ---- */

#define MODE_OF(flags, ap_last)                                                    \
	mode_t mode = 0;                                                           \
	if ((flags) & (O_CREAT | O_TMPFILE)) {                                     \
		va_list ap;                                                        \
		va_start(ap, ap_last);                                             \
		mode = (mode_t)va_arg(ap, unsigned);                               \
		va_end(ap);                                                        \
	}

int open(const char *path, int flags, ...)
{
	MODE_OF(flags, flags);
	CACHED(open);
	return fails(FAULT_FD) ? (errno = EMFILE, -1) : real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	MODE_OF(flags, flags);
	CACHED(open64);
	return fails(FAULT_FD) ? (errno = EMFILE, -1) : real(path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
	MODE_OF(flags, flags);
	CACHED(openat);
	return fails(FAULT_FD) ? (errno = EMFILE, -1) : real(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...)
{
	MODE_OF(flags, flags);
	CACHED(openat64);
	return fails(FAULT_FD) ? (errno = EMFILE, -1) : real(at, path, flags, mode);
}

FILE *fopen(const char *path, const char *how)
{
	CACHED(fopen);
	return fails(FAULT_FD) ? (errno = EMFILE, NULL) : real(path, how);
}

FILE *fdopen(int fd, const char *how)
{
	CACHED(fdopen);
	return fails(FAULT_FD) ? (errno = EMFILE, NULL) : real(fd, how);
}

int pipe(int fds[2])
{
	CACHED(pipe);
	return fails(FAULT_FD) ? (errno = EMFILE, -1) : real(fds);
}

int pipe2(int fds[2], int flags)
{
	CACHED(pipe2);
	return fails(FAULT_FD) ? (errno = EMFILE, -1) : real(fds, flags);
}

int memfd_create(const char *name, unsigned flags)
{
	CACHED(memfd_create);
	return fails(FAULT_FD) ? (errno = EMFILE, -1) : real(name, flags);
}

int dup(int fd)
{
	CACHED(dup);
	return fails(FAULT_FD) ? (errno = EMFILE, -1) : real(fd);
}

int dup2(int from, int to)
{
	CACHED(dup2);
	return fails(FAULT_FD) ? (errno = EMFILE, -1) : real(from, to);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	/* By number, because the C library maps memory before it can look up names. */
	if (fails(FAULT_MMAP)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

int fcntl(int fd, int command, ...)
{
	va_list ap;
	va_start(ap, command);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	CACHED(fcntl);
	if (fault.small_pipes && command == F_SETPIPE_SZ) {
		errno = EPERM;
		return -1;
	}
	return real(fd, command, arg);
}

/* ---- input and output ---- */

/* Standard error is left alone: it is where the failure is told. */
#define IO_FAULTS(fd)                                                              \
	do {                                                                       \
		if ((fd) == STDERR_FILENO)                                         \
			break;                                                     \
		if (fails(FAULT_IO)) {                                             \
			errno = EIO;                                               \
			return -1;                                                 \
		}                                                                  \
		if (interrupted()) {                                               \
			errno = EINTR;                                             \
			return -1;                                                 \
		}                                                                  \
	} while (0)

ssize_t read(int fd, void *p, size_t n)
{
	IO_FAULTS(fd);
	return syscall(SYS_read, fd, p, shortened(n));
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	IO_FAULTS(fd);
	return syscall(SYS_pread64, fd, p, shortened(n), at);
}

ssize_t pread64(int fd, void *p, size_t n, off_t at)
{
	IO_FAULTS(fd);
	return syscall(SYS_pread64, fd, p, shortened(n), at);
}

ssize_t write(int fd, const void *p, size_t n)
{
	IO_FAULTS(fd);
	return syscall(SYS_write, fd, p, shortened(n));
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	IO_FAULTS(fd);
	return syscall(SYS_pwrite64, fd, p, shortened(n), at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
	IO_FAULTS(fd);
	return syscall(SYS_pwrite64, fd, p, shortened(n), at);
}

ssize_t writev(int fd, const struct iovec *iov, int n_iov)
{
	IO_FAULTS(fd);
	if (fault.armed && fault.short_bytes)
		for (int i = 0; i < n_iov; i++)
			if (iov[i].iov_len)
				return syscall(SYS_write, fd, iov[i].iov_base, shortened(iov[i].iov_len));
	return syscall(SYS_writev, fd, iov, n_iov);
}

ssize_t readv(int fd, const struct iovec *iov, int n_iov)
{
	IO_FAULTS(fd);
	if (fault.armed && fault.short_bytes)
		for (int i = 0; i < n_iov; i++)
			if (iov[i].iov_len)
				return syscall(SYS_read, fd, iov[i].iov_base, shortened(iov[i].iov_len));
	return syscall(SYS_readv, fd, iov, n_iov);
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	if (interrupted()) {
		errno = EINTR;
		return -1;
	}
	CACHED(poll);
	return real(fds, n, timeout_ms);
}

#define FAILING_CALL(type, name, params, args)                                     \
	type name params                                                           \
	{                                                                          \
		CACHED(name);                                                      \
		return fails(FAULT_IO) ? (errno = EIO, (type)-1) : real args;      \
	}

FAILING_CALL(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence))
FAILING_CALL(off64_t, lseek64, (int fd, off64_t at, int whence), (fd, at, whence))
FAILING_CALL(int, ftruncate, (int fd, off_t n), (fd, n))
FAILING_CALL(int, ftruncate64, (int fd, off64_t n), (fd, n))
FAILING_CALL(int, fstat, (int fd, struct stat *st), (fd, st))
FAILING_CALL(int, fsync, (int fd), (fd))
FAILING_CALL(int, fdatasync, (int fd), (fd))
FAILING_CALL(int, rename, (const char *from, const char *to), (from, to))
FAILING_CALL(int, link, (const char *from, const char *to), (from, to))
FAILING_CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	CACHED(pthread_create);
	return fails(FAULT_THREAD) ? EAGAIN : real(t, attr, run, arg);
}

/* ---- when it begins ---- */

static void shrink(int fd, int n_bytes)
{
	struct stat st;
	if (!syscall(SYS_fstat, fd, &st) && S_ISFIFO(st.st_mode))
		syscall(SYS_fcntl, fd, F_SETPIPE_SZ, n_bytes);
}

static int armed_main(int argc, char **argv, char **env)
{
	const char *what = getenv("WEIR_FAULT"), *n = getenv("WEIR_SHORT");
	fault.short_bytes = n ? strtol(n, NULL, 10) : 0;
	n = getenv("WEIR_EINTR");
	fault.eintr_every = n ? strtol(n, NULL, 10) : 0;
	n = getenv("WEIR_PIPE");
	if (n) {
		shrink(STDIN_FILENO, (int)strtol(n, NULL, 10));
		shrink(STDOUT_FILENO, (int)strtol(n, NULL, 10));
		fault.small_pipes = true;
	}
	for (unsigned k = 1; what && k < sizeof(kind_names) / sizeof(*kind_names); k++) {
		size_t length = strlen(kind_names[k]);
		if (!strncmp(what, kind_names[k], length) && what[length] == ':') {
			fault.kind = (enum kind)k;
			fault.at = strtol(what + length + 1, NULL, 10);
		}
	}
	void *warm[2];
	backtrace(warm, 2); /* its first call takes memory */
	const char *only = getenv("WEIR_FAULT_ONLY"), *name = strrchr(argv[0], '/');
	fault.armed = !only || !strcmp(only, name ? name + 1 : argv[0]);
	return fault.program(argc, argv, env);
}

int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
	void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
	void (*rtld_fini)(void), void *stack_end)
{
	REAL(__libc_start_main);
	fault.program = program;
	return real(armed_main, argc, argv, init, fini, rtld_fini, stack_end);
}
