/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rogue SOCKET MODE ADDR PORT: a client that misbehaves in mid-transfer, or the client at the other
 * end of its connection.
 *
 *	partner		listens; succeeds if the end of the other side was reported and none of
 *			its own objects is damaged (ADDR is ignored)
 *	stream		continues until it is killed
 *	scribble	writes random bytes over all the memory that it shares with saker, for
 *			some seconds
 *	punch		punches holes into all of it, occupies the huge pages that would fill
 *			them, and continues
 *	truncate	truncates the memory that it registered, where the kernel allows it, and
 *			continues
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stream.h"

#define SECONDS   3
#define WARM      200 /* messages before the misbehaviour */
#define MAX_MAPS  64
#define HUGE_PAGE (2l << 20)
#define ALL       "memfd:"
#define BROUGHT   "memfd:saker-client"

struct map {
	uint8_t *base;
	size_t len;
};

static uint64_t
random64(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static void
map_file(char path[96], const struct map *m)
{
	snprintf(path, 96, "/proc/self/map_files/%lx-%lx", (unsigned long)m->base,
		(unsigned long)m->base + m->len);
}

static bool
is_huge(const struct map *m)
{
	struct stat st;
	char path[96];

	map_file(path, m);
	return stat(path, &st) == 0 && st.st_blksize == HUGE_PAGE;
}

/* Finds the shared mappings of memfds whose name contains `name`. */
static int
shared_maps(struct map *maps, const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512];
	int n = 0;

	while (f != NULL && n < MAX_MAPS && fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, "rw-s") != NULL && strstr(line, name) != NULL &&
			sscanf(line, "%lx-%lx", &from, &to) == 2)
			maps[n++] = (struct map){(uint8_t *)from, to - from};
	if (f != NULL)
		fclose(f);
	return n;
}

/*
 * Overwrites the mapping: by round, random words here and there; small numbers here and there; a
 * new turn and random contents in every ring entry; random words everywhere.
 */
static void
scribble_once(const struct map *m, unsigned round)
{
	uint64_t *at = (uint64_t *)m->base;
	size_t words = m->len / 8;

	for (size_t i = 0; round % 4 < 2 && i < words / 4096 + 16; i++)
		at[random64() % words] = round % 4 ? random64() % 256 : random64();
	for (size_t i = 0; round % 4 == 2 && i < words; i++)
		at[i] = random64() << 32 | (1 + round / 4 % 8); /* the entry's turn: the low half */
	for (size_t i = 0; round % 4 == 3 && i < words; i++)
		at[i] = random64();
}

static int
scribble(struct stream *s)
{
	time_t until = time(NULL) + SECONDS;
	struct map maps[MAX_MAPS];
	int n = shared_maps(maps, ALL);

	printf("%d shared mappings\n", n);
	fflush(stdout);
	for (unsigned round = 0; n > 0 && time(NULL) < until; round++)
		for (int i = 0; i < n; i++)
			scribble_once(&maps[i], round);
	_exit(n > 1 ? 0 : 1); /* no library can be relied on now */
}

/* Reserves the free huge pages for a while, so that a hole stays a hole. */
static void
hoard(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");

	if (f != NULL && fscanf(f, "%lu", &pages) != 1)
		pages = 0;
	if (f != NULL)
		fclose(f);
	for (; pages > 0; pages--) {
		void *p = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

		if (p == MAP_FAILED)
			break;
	}
}

/* Continues until the stream breaks, or long enough for saker to have accessed every page. */
static int
go_on(struct stream *s)
{
	time_t until = time(NULL) + SECONDS;

	while (!s->broken && time(NULL) < until)
		if (stream_turn(s))
			break;
	printf("broken: %d\n", s->broken);
	fflush(stdout);
	_exit(0);
}

static int
holes_made(int holes, const struct map *m)
{
	hoard();
	printf("%d holes, %s huge pages\n", holes, is_huge(m) ? "of" : "not of");
	fflush(stdout);
	return holes > 0 ? 0 : -1;
}

/* Posts a Read whose sink is in a hole. */
static int
read_into(struct stream *s, uint8_t *at, const struct saker_mr *mr)
{
	struct rd_sge sge = {(uintptr_t)at, 4096, saker_mr_stag(mr)};
	struct saker_wr wr = {
		.opcode = RD_READ,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.remote_addr = s->far_addr,
		.rkey = s->far_stag,
	};

	return saker_post_send(s->p.qp, &wr, 1) == 1 ? 0 : -1;
}

/*
 * Punches holes into memory that the traffic does not touch, because traffic would fill the holes
 * immediately. The pages must have existed before: the kernel still has a reservation for pages
 * that never existed.
 */
static int
punch(struct stream *s)
{
	uint8_t *p = saker_alloc(s->p.s, 4 * HUGE_PAGE), *hole;
	struct saker_mr *mr;
	struct map maps[MAX_MAPS];
	int n = shared_maps(maps, BROUGHT), of = 0;

	if (p == NULL || saker_mr_create(s->p.pd, p, 4 * HUGE_PAGE,
				 RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE, &mr))
		return peer_fail("memory to punch a hole into", -ENOMEM);
	hole = (uint8_t *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1ul));
	memset(hole, 1, 2 * HUGE_PAGE);
	while (of < n - 1 && (hole < maps[of].base || hole >= maps[of].base + maps[of].len))
		of++;
	if (holes_made(madvise(hole, 2 * HUGE_PAGE, MADV_REMOVE) == 0, &maps[of]) ||
		read_into(s, hole, mr) || read_into(s, hole + HUGE_PAGE, mr))
		return -1;
	return go_on(s);
}

/* libsaker accesses these holes as well: a SIGBUS may end this process. */
static int
hollow(struct stream *s)
{
	struct map maps[MAX_MAPS];
	int n = shared_maps(maps, ALL), holes = 0;

	for (int i = 0; i < n; i++)
		holes += madvise(maps[i].base, maps[i].len, MADV_REMOVE) == 0;
	return holes_made(holes, &maps[0]) ? -1 : go_on(s);
}

static int
cut(struct stream *s)
{
	struct map maps[MAX_MAPS];
	int n = shared_maps(maps, ALL), cuts = 0, sealed = 0;

	for (int i = 0; i < n; i++) {
		char path[96];
		int fd;

		map_file(path, &maps[i]);
		fd = open(path, O_RDWR);
		if (fd < 0)
			continue;
		if (ftruncate(fd, 0) == 0)
			cuts++;
		else
			sealed += errno == EPERM;
		close(fd);
	}
	printf("of %d mappings %d were truncated, %d were sealed\n", n, cuts, sealed);
	return go_on(s);
}

static int
partner(struct stream *s)
{
	while (!s->broken)
		if (stream_turn(s))
			return -1;
	return stream_audit(s);
}

static const struct mode {
	const char *name;
	int (*run)(struct stream *s);
} modes[] = {
	{"partner", partner},
	{"stream", partner},
	{"scribble", scribble},
	{"punch", punch},
	{"hollow", hollow},
	{"truncate", cut},
};

static int
run(const char *socket, const struct mode *m, const char *addr, uint16_t port)
{
	static struct stream s;
	int rc;

	if (stream_open(&s, socket, m->name) || stream_join(&s, m == modes ? NULL : addr, port))
		return -1;
	while (m != modes && !s.broken && s.messages < WARM)
		if (stream_turn(&s))
			return -1;
	if (s.broken)
		return peer_fail("the stream broke too early", 0);
	printf("%s\n", m->name);
	fflush(stdout);
	rc = m->run(&s);
	peer_close(&s.p);
	return rc;
}

int
main(int argc, char **argv)
{
	if (argc == 5)
		for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
			if (strcmp(argv[2], modes[i].name) == 0) {
				int rc = run(argv[1], &modes[i], argv[3], (uint16_t)atoi(argv[4]));

				printf("%s\n", rc == 0 ? "PASS" : "FAIL");
				return rc != 0;
			}
	fprintf(stderr,
		"usage: rogue SOCKET partner|stream|scribble|punch|hollow|truncate ADDR PORT\n");
	return 2;
}
