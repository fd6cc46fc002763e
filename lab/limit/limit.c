/*
 * Copies a file as fast as two processes with a shared window between them can: the upper bound that the lab compares
 * with. One process reads the source into the window, the other writes the target from it, and both compute
 * CRC32C of each chunk. There is no negotiation, no journal and no rename, and a target that is incomplete stays.
 *
 * Each lane has a thread in both processes, bound to the same CPU, and its own slots. So a chunk is read, checked and
 * written while it is in the cache of that CPU, and no chunk moves from one CPU to another.
 *
 * A lock of the file admits one write(2) at a time. On ext4 it is held for short if the blocks of the target have been
 * allocated before. On tmpfs it is held while pages are cleared and filled, so all lanes but one add pages with
 * userfaultfd(2) instead, which does not take it.
 *
 * With --tcp the processes share no window. Each lane has a slot in both, and a connection over loopback TCP between
 * them: the upper bound of copies between machines without encryption. There a lane's threads are on different CPUs,
 * where they took three quarters of the time.
 */
#define _GNU_SOURCE

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define WITH_CRC32C __attribute__((target("sse4.2")))
#define crc32c_u64(crc, word) ((uint32_t)_mm_crc32_u64(crc, word))
#define crc32c_u8(crc, byte) _mm_crc32_u8(crc, byte)
#elif defined(__aarch64__)
#pragma GCC target("+crc")
#include <arm_acle.h>
#define WITH_CRC32C
#define crc32c_u64(crc, word) __crc32cd(crc, word)
#define crc32c_u8(crc, byte) __crc32cb(crc, byte)
#else
#error "CRC32C needs an instruction of x86-64 or arm64"
#endif

#define VERSION "1.1"

enum {
	CHUNK = 512 << 10,      /* bytes; of 256 KiB to 1 MiB, which are all fast, the one that dma-copy uses */
	LEAST_CHUNK = 64 << 10, /* of small files, which would use each page of the window only once */
	SLOTS = 2,              /* of a lane: it reads one chunk while the other is written */
	STREAMS = 3,            /* of CRC32C at a time, because an instruction takes three cycles */
	MAX_LANES = 64,
};

/* A slot's state, a futex. */
enum { EMPTY, FULL };

struct crc {
	uint32_t part[STREAMS]; /* of each third of a chunk: combining them would prove nothing more */
};

struct slot {
	_Alignas(64) _Atomic uint32_t state;
	struct crc crc;
	uint64_t offset;
	size_t bytes; /* 0: the end of the file */
	_Alignas(64) unsigned char data[CHUNK];
};

/* Shared by both processes. */
struct window {
	_Alignas(64) _Atomic uint64_t next; /* offset of the next chunk to read */
	struct slot slots[][SLOTS];
};

/* What each of the processes inherits. */
static struct {
	struct window *window;
	int source, target;
	int on_tmpfs;       /* the target */
	uint64_t size;      /* of the source, in bytes */
	size_t page, chunk; /* in bytes */
	int over_tcp;
	int lanes;
	struct lane {
		int cpu;
		struct slot *slots;
		int sender, receiver; /* the ends of its connection */
	} lane[MAX_LANES];
} job;

static uint64_t word_at(const unsigned char *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return word;
}

/* The checksums of three thirds of the data, of which the last one also has the bytes that are left over. */
WITH_CRC32C static struct crc crc32c(const unsigned char *data, size_t bytes)
{
	size_t third = bytes / STREAMS / sizeof(uint64_t) * sizeof(uint64_t);
	uint32_t first = ~0u, second = ~0u, last = ~0u;

	for (size_t at = 0; at < third; at += sizeof(uint64_t)) {
		first = crc32c_u64(first, word_at(data + at));
		second = crc32c_u64(second, word_at(data + third + at));
		last = crc32c_u64(last, word_at(data + 2 * third + at));
	}
	for (size_t at = STREAMS * third; at < bytes; at++)
		last = crc32c_u8(last, data[at]);
	return (struct crc){{first, second, last}};
}

static void wait_for(struct slot *slot, uint32_t wanted)
{
	uint32_t state;

	while ((state = atomic_load(&slot->state)) != wanted)
		syscall(SYS_futex, &slot->state, FUTEX_WAIT, state, NULL, NULL, 0);
}

static void set(struct slot *slot, uint32_t state)
{
	atomic_store(&slot->state, state);
	syscall(SYS_futex, &slot->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void read_chunk(struct slot *slot)
{
	for (size_t done = 0; done < slot->bytes;) {
		ssize_t got = pread(job.source, slot->data + done, slot->bytes - done, (off_t)(slot->offset + done));

		if (got < 0 && errno != EINTR)
			err(EXIT_FAILURE, "reading the source");
		if (got == 0)
			errx(EXIT_FAILURE, "the source became shorter");
		done += got > 0 ? (size_t)got : 0;
	}
}

static void write_chunk(const struct slot *slot)
{
	for (size_t done = 0; done < slot->bytes;) {
		ssize_t put = pwrite(job.target, slot->data + done, slot->bytes - done, (off_t)(slot->offset + done));

		if (put < 0 && errno != EINTR)
			err(EXIT_FAILURE, "writing the target");
		done += put > 0 ? (size_t)put : 0;
	}
}

/* Takes the next chunk of the file, of any lane, so that a lane that is slower gets less. */
static void take_chunk(struct slot *slot)
{
	slot->offset = atomic_fetch_add(&job.window->next, job.chunk);
	slot->bytes = 0;
	if (slot->offset < job.size)
		slot->bytes = job.size - slot->offset < job.chunk ? job.size - slot->offset : job.chunk;
	read_chunk(slot);
	slot->crc = crc32c(slot->data, slot->bytes);
}

static void *send_chunks(void *argument)
{
	struct lane *lane = argument;

	for (size_t i = 0;; i++) {
		struct slot *slot = &lane->slots[i % SLOTS];

		wait_for(slot, EMPTY);
		take_chunk(slot);
		set(slot, FULL);
		if (slot->bytes == 0)
			return NULL;
	}
}

/* A mapping of the target, to which pages can be added. */
struct filler {
	int faults;
	unsigned char *pages; /* NULL: write(2) is used */
};

/* Prepares to add pages to a target on tmpfs. Where the system does not permit that, the target is written. */
static void open_filler(struct filler *filler)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	unsigned char *pages;

	filler->faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (filler->faults < 0)
		return;
	pages = mmap(NULL, job.size, PROT_READ | PROT_WRITE, MAP_SHARED, job.target, 0);
	range.range.start = (uintptr_t)pages;
	range.range.len = (job.size + job.page - 1) / job.page * job.page;
	if (pages != MAP_FAILED && ioctl(filler->faults, UFFDIO_API, &api) == 0 &&
	    ioctl(filler->faults, UFFDIO_REGISTER, &range) == 0)
		filler->pages = pages;
}

/* Adds a chunk of whole pages, and reports whether that was possible. */
static int fill_chunk(const struct filler *filler, const struct slot *slot)
{
	size_t done = 0;

	if (!filler->pages || slot->bytes % job.page != 0)
		return 0;
	while (done < slot->bytes) {
		struct uffdio_copy copy = {
			.dst = (uintptr_t)(filler->pages + slot->offset + done),
			.src = (uintptr_t)(slot->data + done),
			.len = slot->bytes - done,
			.mode = UFFDIO_COPY_MODE_DONTWAKE,
		};

		if (ioctl(filler->faults, UFFDIO_COPY, &copy) != 0 && copy.copy <= 0)
			return 0;
		done += (size_t)copy.copy;
	}
	/* The mapping is not read, and keeping its pages mapped costs time. */
	madvise(filler->pages + slot->offset, slot->bytes, MADV_DONTNEED);
	return 1;
}

static void open_filler_of(struct filler *filler, const struct lane *lane)
{
	if (job.on_tmpfs && lane != &job.lane[job.lanes - 1])
		open_filler(filler);
}

static void store_chunk(const struct filler *filler, const struct slot *slot)
{
	struct crc crc = crc32c(slot->data, slot->bytes);

	if (memcmp(&crc, &slot->crc, sizeof(crc)) != 0)
		errx(EXIT_FAILURE, "checksum mismatch at offset %llu", (unsigned long long)slot->offset);
	if (!fill_chunk(filler, slot))
		write_chunk(slot);
}

static void *receive_chunks(void *argument)
{
	struct lane *lane = argument;
	struct filler filler = {0};

	open_filler_of(&filler, lane);
	for (size_t i = 0;; i++) {
		struct slot *slot = &lane->slots[i % SLOTS];

		wait_for(slot, FULL);
		if (slot->bytes == 0)
			return NULL;
		store_chunk(&filler, slot);
		set(slot, EMPTY);
	}
}

/* What precedes a chunk on a connection. */
struct header {
	uint64_t offset, bytes;
	struct crc crc;
};

static void send_all(int socket, const void *data, size_t bytes, int flags)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t put = send(socket, (const char *)data + done, bytes - done, flags | MSG_NOSIGNAL);

		if (put < 0 && errno != EINTR)
			err(EXIT_FAILURE, "sending");
		done += put > 0 ? (size_t)put : 0;
	}
}

static void receive_all(int socket, void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = recv(socket, (char *)data + done, bytes - done, MSG_WAITALL);

		if (got < 0 && errno != EINTR)
			err(EXIT_FAILURE, "receiving");
		if (got == 0)
			errx(EXIT_FAILURE, "the connection has ended");
		done += got > 0 ? (size_t)got : 0;
	}
}

static void *send_over_tcp(void *argument)
{
	struct lane *lane = argument;
	struct slot *slot = lane->slots;

	do {
		take_chunk(slot);
		struct header header = {slot->offset, slot->bytes, slot->crc};
		send_all(lane->sender, &header, sizeof(header), slot->bytes > 0 ? MSG_MORE : 0);
		send_all(lane->sender, slot->data, slot->bytes, 0);
	} while (slot->bytes > 0);
	return NULL;
}

static void *receive_over_tcp(void *argument)
{
	struct lane *lane = argument;
	struct slot *slot = lane->slots;
	struct filler filler = {0};

	open_filler_of(&filler, lane);
	for (;;) {
		struct header header;

		receive_all(lane->receiver, &header, sizeof(header));
		if (header.bytes == 0)
			return NULL;
		if (header.bytes > sizeof(slot->data))
			errx(EXIT_FAILURE, "a chunk of %llu bytes", (unsigned long long)header.bytes);
		slot->offset = header.offset;
		slot->bytes = header.bytes;
		slot->crc = header.crc;
		receive_all(lane->receiver, slot->data, slot->bytes);
		store_chunk(&filler, slot);
	}
}

/* Runs one side: a thread for each lane, on the lane's CPU or on that of the lane `shift` places further. */
static void run_side(void *(*run)(void *), int shift)
{
	pthread_t threads[MAX_LANES];

	for (int i = 0; i < job.lanes; i++) {
		pthread_attr_t attributes;
		cpu_set_t cpu;

		CPU_ZERO(&cpu);
		CPU_SET(job.lane[(i + shift) % job.lanes].cpu, &cpu);
		if (pthread_attr_init(&attributes) != 0 ||
		    pthread_attr_setaffinity_np(&attributes, sizeof(cpu), &cpu) != 0 ||
		    pthread_create(&threads[i], &attributes, run, &job.lane[i]) != 0)
			errx(EXIT_FAILURE, "cannot start a thread for lane %d", i);
		pthread_attr_destroy(&attributes);
	}
	for (int i = 0; i < job.lanes; i++)
		pthread_join(threads[i], NULL);
}

/* Chunks that are small enough for 32 of them. */
static void choose_chunk(void)
{
	job.chunk = CHUNK;
	while (job.chunk > LEAST_CHUNK && job.size / job.chunk < 32)
		job.chunk /= 2;
}

/* A lane for every CPU of two, and for half of more, but not more than there are chunks. */
static void choose_lanes(void)
{
	uint64_t chunks = (job.size + job.chunk - 1) / job.chunk;
	cpu_set_t allowed;
	int most;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		err(EXIT_FAILURE, "cannot get the CPUs");
	most = CPU_COUNT(&allowed) > 4 ? CPU_COUNT(&allowed) / 2 : 2;
	most = most < MAX_LANES ? most : MAX_LANES;
	if (chunks < (uint64_t)most)
		most = (int)chunks;
	for (int cpu = 0; cpu < CPU_SETSIZE && job.lanes < most; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			job.lane[job.lanes++].cpu = cpu;
}

static void open_files(const char *source, const char *target)
{
	struct stat status;
	struct statfs system;

	job.source = open(source, O_RDONLY | O_CLOEXEC);
	if (job.source < 0 || fstat(job.source, &status) != 0)
		err(EXIT_FAILURE, "cannot open %s", source);
	if (!S_ISREG(status.st_mode))
		errx(EXIT_FAILURE, "%s is not a regular file", source);
	job.size = (uint64_t)status.st_size;
	job.target = open(target, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (job.target < 0 || fstatfs(job.target, &system) != 0)
		err(EXIT_FAILURE, "cannot create %s", target);
	job.on_tmpfs = system.f_type == TMPFS_MAGIC;
	if (ftruncate(job.target, (off_t)job.size) != 0)
		err(EXIT_FAILURE, "cannot extend %s", target);
	/* On tmpfs it would clear pages first. */
	if (job.size > 0 && !job.on_tmpfs && fallocate(job.target, 0, 0, (off_t)job.size) != 0 && errno != EOPNOTSUPP)
		err(EXIT_FAILURE, "cannot allocate %s", target);
}

static void map_window(void)
{
	size_t bytes = sizeof(struct window) + (size_t)job.lanes * sizeof(job.window->slots[0]);

	job.window = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  (job.over_tcp ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
	if (job.window == MAP_FAILED)
		err(EXIT_FAILURE, "cannot map the window");
	for (int i = 0; i < job.lanes; i++)
		job.lane[i].slots = job.window->slots[i];
}

/* Connects the lanes to a port of this process; the connections are inherited. */
static void connect_lanes(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) != 0)
		err(EXIT_FAILURE, "cannot listen");
	for (int i = 0; i < job.lanes; i++) {
		struct lane *lane = &job.lane[i];

		lane->sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (lane->sender < 0 || connect(lane->sender, (struct sockaddr *)&address, length) != 0 ||
		    setsockopt(lane->sender, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
			err(EXIT_FAILURE, "cannot connect");
		lane->receiver = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (lane->receiver < 0)
			err(EXIT_FAILURE, "cannot accept a connection");
	}
	close(listener);
}

/* Starts one side as a process that ends with this one. */
static pid_t start_side(void *(*run)(void *), int shift)
{
	pid_t parent = getpid();
	pid_t child = fork();

	if (child < 0)
		err(EXIT_FAILURE, "cannot start a process");
	if (child > 0)
		return child;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(EXIT_FAILURE);
	run_side(run, shift);
	exit(EXIT_SUCCESS);
}

/* Copies the file. The first side that fails ends the other one, which would wait for it. */
int main(int argc, char **argv)
{
	pid_t sides[2];
	int failed = 0;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("dma-copy-limit " VERSION);
		return EXIT_SUCCESS;
	}
	job.over_tcp = argc > 1 && strcmp(argv[1], "--tcp") == 0;
	argv += job.over_tcp;
	argc -= job.over_tcp;
	if (argc != 3) {
		fputs("usage: dma-copy-limit [--tcp] SOURCE TARGET\n", stderr);
		return EXIT_FAILURE;
	}
	open_files(argv[1], argv[2]);
	job.page = (size_t)sysconf(_SC_PAGESIZE);
	choose_chunk();
	choose_lanes();
	map_window();
	if (job.over_tcp)
		connect_lanes();
	sides[0] = start_side(job.over_tcp ? send_over_tcp : send_chunks, 0);
	sides[1] = start_side(job.over_tcp ? receive_over_tcp : receive_chunks, job.over_tcp);
	for (int left = 2; left > 0; left--) {
		int status;
		pid_t ended = wait(&status);

		if (ended < 0)
			err(EXIT_FAILURE, "cannot wait for a process");
		if (status == 0)
			continue;
		failed = 1;
		if (left == 2)
			kill(ended == sides[0] ? sides[1] : sides[0], SIGKILL);
	}
	if (!failed && close(job.target) != 0)
		err(EXIT_FAILURE, "cannot close %s", argv[2]);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
