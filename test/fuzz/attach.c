/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Unix socket with hostile client processes: an instance without ports, its socket thread, and
 * up to four connections that send messages with any bytes and descriptors, register the memory
 * that they passed, write wake-ups, and hang up at any time. Afterwards no client, region or
 * descriptor may remain.
 *
 * Input: steps of [kind and connection][operands]. The thread is a real one: each step that is due
 * a reply waits for it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>

#include "../../lib/base/log.h"
#include "../../lib/base/mem.h"
#include "../../lib/engine/engine.h"
#include "../../lib/shm/shm_ring.h"
#include "../../lib/shm/shm_sock.h"
#include "fuzz.h"

#define CONNS   4
#define STEPS   32
#define HOME    (512u << 10)
#define TURNS   4
#define WAIT_MS 60000 /* a reply that does not come in this time is missing */

static struct conn {
	int fd, wake, bell; /* -1: none */
	uint8_t *home;
	size_t size;
	struct shm_prod cmd;
	uint32_t region;
} conns[CONNS];
static struct eng *e;
static char path[64];

static void
turns(unsigned n)
{
	while (n-- > 0)
		eng_poll(e, 0, eng_clock());
}

/* Ends the thread and removes the socket's file. */
static void
stop(void)
{
	eng_socket_stop(e);
	eng_destroy(e);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *args[] = {"fuzz", "--no-huge", "--no-shconf", "--no-pci", "-m", "64", "-l", "0",
		"--no-telemetry", "--log-level=error"};
	static struct eng_config cfg;
	char err[256];

	CLAIM(rte_eal_init(SK_ARRAY_LEN(args), args) >= 0);
	sk_log_set(SK_LOG_ERR, NULL);
	eng_config_default(&cfg);
	cfg.limits = (struct eng_limits){.clients = 3, /* fewer than connections */
		.qps = 8,
		.cqs = 8,
		.mrs = 16,
		.pds = 8,
		.srqs = 8,
		.listeners = 8,
		.conns = 8,
		.rx_mbufs = 256,
		.tx_mbufs = 256,
		.client_qps = 4,
		.client_cqs = 4,
		.client_mrs = 8,
		.client_regions = 3,
		.client_home_bytes = HOME,
		.client_mem_bytes = 64u << 10,
		.sq_depth = 16,
		.rq_depth = 16,
		.cq_depth = 16,
		.ird = 4,
		.ord = 4};
	e = eng_create(&cfg, err, sizeof(err));
	if (e == NULL)
		fprintf(stderr, "%s\n", err);
	CLAIM(e != NULL);
	snprintf(path, sizeof(path), "/tmp/saker-fuzz-attach.%d", getpid());
	CLAIM(eng_socket_start(e, path, err, sizeof(err)) == 0);
	atexit(stop);
	return 0;
}

/* ---- Connections ---- */

static void
drop_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
hang_up(struct conn *c)
{
	drop_fd(&c->fd);
	drop_fd(&c->wake);
	drop_fd(&c->bell);
	if (c->home != NULL)
		munmap(c->home, c->size);
	c->home = NULL;
}

static void
dial(struct conn *c)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	if (c->fd >= 0)
		return;
	strcpy(un.sun_path, path);
	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CLAIM(c->fd >= 0);
	CLAIM(connect(c->fd, (const struct sockaddr *)&un, sizeof(un)) == 0);
	c->region = 0;
}

/* Returns a descriptor for a REGION: memory of `pages` pages, or one that must be refused. */
static int
some_fd(unsigned kind, unsigned pages)
{
	int fd;

	if (kind == 1)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CLAIM(fd >= 0 && ftruncate(fd, (off_t)pages * 4096) == 0);
	if (kind != 2)
		CLAIM(fcntl(fd, F_ADD_SEALS,
			      kind == 3 ? F_SEAL_SHRINK | F_SEAL_WRITE : F_SEAL_SHRINK) == 0);
	return fd;
}

static void
welcome(struct conn *c, const struct shm_sock_msg *m, const int *fds, unsigned nfds)
{
	struct shm_header h;

	CLAIM(nfds == 3 && m->size == HOME);
	c->size = m->size;
	c->home = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	CLAIM(c->home != MAP_FAILED);
	close(fds[0]);
	c->wake = fds[1];
	c->bell = fds[2];
	memcpy(&h, c->home, sizeof(h));
	CLAIM(h.magic == SHM_MAGIC);
	shm_prod_init(&c->cmd, c->home, &h.cmd);
}

/* Receives the reply to a message, which comes in any case. */
static void
reply(struct conn *c)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
	struct shm_sock_msg m;
	struct iovec iov = {&m, sizeof(m)};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	const struct cmsghdr *cm;
	int fds[4] = {-1, -1, -1, -1};
	unsigned nfds = 0;
	int n;

	do /* libFuzzer's timer interrupts it */
		n = poll(&p, 1, WAIT_MS);
	while (n < 0 && errno == EINTR);
	CLAIM(n == 1);
	if (recvmsg(c->fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(m)) {
		hang_up(c); /* the engine has closed it */
		return;
	}
	cm = CMSG_FIRSTHDR(&h);
	if (cm != NULL) {
		nfds = (unsigned)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(cm), nfds * sizeof(int));
	}
	CLAIM(m.magic == SHM_MAGIC && m.op >= SHM_WELCOME && m.op <= SHM_REFUSED);
	if (m.op == SHM_WELCOME)
		welcome(c, &m, fds, nfds);
	else
		CLAIM(nfds == 0);
	if (m.op == SHM_REGION_IS)
		c->region = m.region;
}

/* Sends a message with descriptors, and receives the reply. */
static void
send_msg(struct conn *c, const void *msg, size_t len, const int *fds, unsigned nfds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {0};
	struct iovec iov = {(void *)(uintptr_t)msg, len};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cm;

	if (nfds > 0) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&h);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	if (sendmsg(c->fd, &h, MSG_NOSIGNAL) < 0) {
		hang_up(c);
		return;
	}
	reply(c);
	turns(TURNS);
}

/* ---- Steps ---- */

static void
step_hello(struct conn *c, struct fuzz_input *in)
{
	struct shm_sock_msg m = {.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_HELLO};

	dial(c);
	for (unsigned i = 0, n = fuzz_byte(in) % 16; i < n; i++)
		m.text[i] = (char)fuzz_byte(in);
	send_msg(c, &m, sizeof(m), NULL, 0);
}

/* Operands: [kind and number of descriptors][pages][difference of the size][flags] */
static void
step_region(struct conn *c, struct fuzz_input *in)
{
	struct shm_sock_msg m = {.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REGION};
	unsigned how = fuzz_byte(in), pages = 1 + fuzz_byte(in) % 20u, n = how >> 4 & 3;
	int fds[4];

	dial(c);
	m.size = pages * 4096ull + fuzz_byte(in);
	m.flags = fuzz_byte(in);
	n = n == 3 ? 0 : n + 1;
	for (unsigned i = 0; i < n; i++)
		fds[i] = some_fd(how & 3, pages);
	send_msg(c, &m, sizeof(m), fds, n);
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* Sends a HELLO or REGION whose bytes and length the input changes. */
static void
step_raw(struct conn *c, struct fuzz_input *in)
{
	struct shm_sock_msg m = {.magic = SHM_MAGIC, .version = SHM_VERSION, .size = 4096};
	uint8_t buf[2 * sizeof(m)] = {0};
	size_t len = sizeof(m) + (size_t)(int8_t)fuzz_byte(in);
	unsigned how = fuzz_byte(in);
	int fds[8];

	dial(c);
	m.op = how & 7;
	memcpy(buf, &m, sizeof(m));
	for (unsigned n = how >> 3 & 3; n > 0; n--) {
		unsigned at = fuzz_byte(in) % sizeof(buf);

		buf[at] = fuzz_byte(in);
	}
	for (unsigned i = 0; i < how >> 5; i++)
		fds[i] = some_fd(i & 3, 1);
	if (len > 0)
		send_msg(c, buf, SK_MIN(len, sizeof(buf)), fds, how >> 5);
	for (unsigned i = 0; i < how >> 5; i++)
		close(fds[i]);
}

/* Adds `n` to the eventfd of the doorbell. */
static void
ring(struct conn *c, uint64_t n)
{
	if (c->bell >= 0 && write(c->bell, &n, sizeof(n)) < 0)
		CLAIM(errno == EAGAIN); /* its counter is full */
}

/* Sends a command: a domain, a region in the memory that was passed last, or its removal. */
static void
step_command(struct conn *c, struct fuzz_input *in)
{
	static const uint16_t ops[] = {
		SHM_PD_CREATE, SHM_MR_CREATE, SHM_REGION_DROP, SHM_MR_DESTROY, SHM_CQ_CREATE};
	struct shm_msg m = {.op = ops[fuzz_byte(in) % SK_ARRAY_LEN(ops)]};

	if (c->home == NULL)
		return;
	if (m.op == SHM_MR_CREATE)
		m.body.mr = (struct shm_mr){.access = 1,
			.len = 4096,
			.nextents = 1,
			.extents = {{.region = c->region, .offset = fuzz_byte(in), .len = 4096}}};
	else
		m.body.handle = m.op == SHM_REGION_DROP ? c->region : fuzz_byte(in);
	if (shm_prod_room(&c->cmd) > 0) {
		memcpy((uint8_t *)shm_prod_entry(&c->cmd) + 4, (uint8_t *)&m + 4, sizeof(m) - 4);
		shm_prod_push(&c->cmd);
	}
	ring(c, 1);
	turns(32); /* the control stage runs in every 16th turn */
}

/* Rings the doorbell many times, fills or reads its eventfd, and takes a wake-up. Operands: [how
 * and number of rings] */
static void
step_wake(struct conn *c, struct fuzz_input *in)
{
	unsigned how = fuzz_byte(in);
	uint64_t count;

	for (unsigned n = how % 64; n > 0; n--)
		ring(c, 1);
	if (how & 64)
		ring(c, UINT64_MAX - 1); /* further writes fail */
	if (how & 128 && c->bell >= 0 && read(c->bell, &count, sizeof(count)) < 0)
		CLAIM(errno == EAGAIN);
	if (c->wake >= 0 && recv(c->wake, &count, sizeof(count), MSG_DONTWAIT) < 0)
		turns(1);
}

static void
step_scribble(struct conn *c, struct fuzz_input *in)
{
	size_t at = (size_t)fuzz_byte(in) << 8 | fuzz_byte(in);

	if (c->home != NULL)
		memset(c->home + at % (c->size - 256), fuzz_byte(in), fuzz_byte(in));
	turns(TURNS);
}

/* Returns the number of sockets, memfds and eventfds that are open. libFuzzer opens pipes at any
 * time. */
static unsigned
descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	static const char *const kinds[] = {"socket:", "/memfd:", "anon_inode:[eventfd]"};
	const struct dirent *f;
	unsigned n = 0;

	CLAIM(d != NULL);
	while ((f = readdir(d)) != NULL) {
		char at[32] = "";

		if (readlinkat(dirfd(d), f->d_name, at, sizeof(at) - 1) > 0)
			for (unsigned i = 0; i < SK_ARRAY_LEN(kinds); i++)
				n += strncmp(at, kinds[i], strlen(kinds[i])) == 0;
	}
	closedir(d);
	return n;
}

/* Runs turns until the thread and the control stage have nothing left of any client. */
static void
settle(void)
{
	static unsigned first;
	uint64_t end = eng_clock() + WAIT_MS * 1000000ull;
	struct eng_totals t;

	for (;;) {
		turns(16);
		eng_totals(e, &t);
		if (t.clients + t.regions + t.mrs + t.pds + t.cqs == 0) {
			if (first == 0)
				first = descriptors();
			if (descriptors() <= first)
				return;
		}
		CLAIM(eng_clock() < end);
		sched_yield();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const kinds[])(struct conn *, struct fuzz_input *) = {
		step_hello, step_region, step_raw, step_command, step_wake, step_scribble};
	struct fuzz_input in = {.p = data, .len = size};

	for (unsigned i = 0; i < CONNS; i++)
		conns[i] = (struct conn){.fd = -1, .wake = -1, .bell = -1};
	settle();
	for (unsigned i = 0; i < STEPS && in.at < in.len; i++) {
		unsigned what = fuzz_byte(&in);
		struct conn *c = &conns[what % CONNS];

		what = what / CONNS % (SK_ARRAY_LEN(kinds) + 1);
		if (what < SK_ARRAY_LEN(kinds))
			kinds[what](c, &in);
		else
			hang_up(c);
	}
	for (unsigned i = 0; i < CONNS; i++)
		hang_up(&conns[i]);
	settle();
	return 0;
}
