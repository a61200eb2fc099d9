/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests a machine's shared memory: programs that attach, detach, die and are reset, a saker process
 * that restarts, a guest that overwrites the memory, and a guest that truncates the file. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "rig.h"

TestSuite(bar, .init = pair_eal, .timeout = 100);

static struct rig r;

/* Maps the machine's memory as a guest does, so that a test can write what libsaker would write, or
 * what it never would. */
static struct shm_bar *
guest_map(void)
{
	int fd = open(r.path, O_RDWR | O_CLOEXEC);
	void *p = mmap(NULL, RIG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	cr_assert_neq(p, MAP_FAILED);
	close(fd);
	return p;
}

static void
served(struct shm_bar *d, unsigned slot, uint32_t token)
{
	while (__atomic_load_n(&d->slots[slot].serves, __ATOMIC_ACQUIRE) != token)
		sched_yield();
}

Test(bar, a_program_transfers_and_leaves_nothing)
{
	struct prog here, there;
	struct eng_totals t;

	rig_start(&r);
	prog_open(&r, &here);
	prog_open_far(&r, &there);
	prog_connect(&here, &there, PAIR_ADDR_B, RIG_PORT);
	prog_write(&here, &there, 3);
	prog_write(&there, &here, 3);
	prog_close(&here);
	prog_event(&there, SAKER_EV_DISCONNECTED);
	rig_clients(&r, 0, 0);
	eng_totals(r.pair.e[0], &t);
	cr_assert_eq(t.qps + t.mrs + t.cqs + t.pds, 0);
	/* The next program must not see its data: prog_open() checks that the memory is zeroed. */
	prog_open(&r, &here);
	prog_close(&here);
	prog_close(&there);
	cr_assert_eq(rig_look(&r).attached, 2);
	rig_end(&r);
}

Test(bar, programs_share_a_machine_up_to_its_slots)
{
	struct prog p[RIG_SLOTS], server;
	struct saker *more;

	rig_start(&r);
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		prog_open(&r, &p[i]);
	cr_assert_eq(saker_open(r.where, "more", &more), -EUSERS);
	cr_assert_eq(rig_look(&r).clients, RIG_SLOTS);
	/* Two programs of the machine connect to each other. */
	prog_connect(&p[0], &p[1], PAIR_ADDR_A, RIG_PORT);
	prog_write(&p[0], &p[1], 2);
	prog_close(&p[2]);
	prog_open(&r, &server);
	prog_close(&server);
	prog_close(&p[0]);
	prog_close(&p[1]);
	rig_end(&r);
}

/* shm_bar.h: `beat` does not change for timeout_ms. The test sets the time. */
Test(bar, a_heartbeat_that_stands_still_ends_the_client)
{
	struct shm_bar *d;
	uint64_t now;

	rig_start(&r);
	d = guest_map();
	__atomic_store_n(&d->slots[1].want, 77, __ATOMIC_RELEASE);
	served(d, 1, 77);
	rig_pause(&r);
	/* Polls at short intervals. The first, long gap does not count against the guest. */
	now = eng_clock() + 10000000000ull;
	for (unsigned ms = 0; ms < RIG_TIMEOUT; ms += 100)
		gw_bar_poll(r.bar, now + ms * 1000000ull);
	d->slots[1].beat++;
	now += RIG_TIMEOUT * 1000000ull;
	for (unsigned ms = 0; ms < RIG_TIMEOUT; ms += 100)
		gw_bar_poll(r.bar, now + ms * 1000000ull);
	cr_assert_eq(rig_look(&r).timed_out, 0);
	gw_bar_poll(r.bar, now + RIG_TIMEOUT * 1000000ull);
	cr_assert_eq(rig_look(&r).timed_out, 1);
	rig_go(&r);
	served(d, 1, 0);
	/* The engine refuses this number for good, and serves another one. */
	cr_assert_eq(d->slots[1].refused, 77);
	__atomic_store_n(&d->slots[1].want, 78, __ATOMIC_RELEASE);
	served(d, 1, 78);
	munmap(d, RIG_SIZE);
	rig_end(&r);
}

/* A guest that was reset, or a program that takes a dead program's slot, draws another number. */
Test(bar, a_new_number_takes_the_place_of_the_old)
{
	struct shm_bar *d;
	struct shm_header *h;

	rig_start(&r);
	d = guest_map();
	h = (struct shm_header *)((uint8_t *)d + d->slot_at);
	__atomic_store_n(&d->slots[0].want, 5, __ATOMIC_RELEASE);
	served(d, 0, 5);
	cr_assert_eq(h->magic, SHM_MAGIC);
	h->heap = 0;
	__atomic_store_n(&d->slots[0].want, 6, __ATOMIC_RELEASE);
	served(d, 0, 6);
	cr_assert_neq(h->heap, 0, "laid out anew");
	cr_assert_eq(h->engine_alive, 1);
	cr_assert_eq(rig_look(&r).clients, 1);
	cr_assert_eq(rig_look(&r).attached, 2);
	__atomic_store_n(&d->slots[0].want, 0, __ATOMIC_RELEASE);
	served(d, 0, 0);
	rig_clients(&r, 0, 0);
	munmap(d, RIG_SIZE);
	rig_end(&r);
}

Test(bar, a_saker_that_comes_back_begins_without_clients)
{
	const struct gw_bar_config cfg = {
		.path = r.path, .size = RIG_SIZE, .slots = RIG_SLOTS, .timeout_ms = RIG_TIMEOUT};
	struct prog here;
	char err[256];

	rig_start(&r);
	prog_open(&r, &here);
	rig_pause(&r);
	cr_assert_null(gw_bar_create(r.pair.e[0], &cfg, err, sizeof(err)), "it is in use");
	gw_bar_destroy(r.bar);
	eng_detach(r.pair.e[0], 0);
	r.bar = gw_bar_create(r.pair.e[0], &cfg, err, sizeof(err));
	cr_assert_not_null(r.bar, "%s", err);
	rig_go(&r);
	prog_event(&here, SAKER_EV_ENGINE_GONE);
	prog_close(&here);
	rig_clients(&r, 0, 0);
	prog_open(&r, &here);
	prog_close(&here);
	rig_end(&r);
}

/* Returns reproducible random numbers (xorshift). */
static uint64_t
next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

Test(bar, a_guest_that_scribbles_over_everything_harms_itself)
{
	struct prog other, there;
	uint64_t x = 88172645463325252ull, *words;
	struct shm_bar *d;
	struct eng_totals t;
	struct rig alias;
	void *home = aligned_alloc(4096, 8u << 20);

	rig_start(&r);
	prog_open_far(&r, &there);
	/* A second flat client of the same engine must not be disturbed. */
	memset(home, 0, 8u << 20);
	cr_assert_geq(eng_attach_flat(r.pair.e[0], "other", home, 8u << 20, 1u << 20), 0);
	memset(&other, 0, sizeof(other));
	alias = r;
	alias.home = home;
	prog_open_far(&alias, &other);
	prog_connect(&other, &there, PAIR_ADDR_B, RIG_PORT);
	d = guest_map();
	words = (uint64_t *)d;
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < RIG_SLOTS; i++)
			__atomic_store_n(&d->slots[i].want, round * 8 + i + 1, __ATOMIC_RELEASE);
		prog_write(&other, &there, 1);
		for (size_t i = 0; i < RIG_SIZE / 8; i++)
			words[i] = next_random(&x);
		prog_write(&there, &other, 1);
	}
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		__atomic_store_n(&d->slots[i].want, 0, __ATOMIC_RELEASE);
	rig_clients(&r, 0, 1);
	eng_totals(r.pair.e[0], &t);
	cr_assert_eq(t.qps, 1, "but the other's");
	cr_assert_gt(rig_look(&r).attached, 0);
	prog_close(&other);
	prog_close(&there);
	munmap(d, RIG_SIZE);
	for (int i = 0; i <= RIG_SLOTS; i++)
		eng_detach(r.pair.e[0], i);
	rig_end(&r);
	free(home);
}

Test(bar, a_file_that_is_cut_ends_its_machine_alone)
{
	struct shm_bar *d;

	rig_start(&r);
	d = guest_map();
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		__atomic_store_n(&d->slots[i].want, i + 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		served(d, i, i + 1);
	munmap(d, RIG_SIZE);
	rig_pause(&r);
	cr_assert_eq(truncate(r.path, 0), 0);
	rig_go(&r);
	rig_clients(&r, 0, 0);
	/* The engine may have found the truncation before the guest. */
	while (!rig_look(&r).dead)
		sched_yield();
	rig_end(&r);
}

Test(bar, the_group_may_open_a_new_file_whatever_the_umask)
{
	struct stat st;
	mode_t before = umask(077);

	rig_start(&r);
	umask(before);
	cr_assert_eq(stat(r.path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0660);
	rig_end(&r);
}

Test(bar, what_makes_no_sense_is_refused)
{
	const struct gw_bar_config good = {.path = "/dev/shm/saker-bar-refused",
		.size = 4u << 20,
		.slots = 1,
		.timeout_ms = 500};
	struct gw_bar_config cfg;
	char err[256];

#define REFUSED(...)                                                                               \
	do {                                                                                       \
		cfg = good;                                                                        \
		__VA_ARGS__;                                                                       \
		cr_assert_null(gw_bar_create(r.pair.e[0], &cfg, err, sizeof(err)));                \
		cr_assert_neq(err[0], '\0');                                                       \
	} while (0)
	rig_start(&r);
	unlink(good.path);
	REFUSED(cfg.size = 3u << 20);
	REFUSED(cfg.size = 0);
	REFUSED(cfg.slots = 0);
	REFUSED(cfg.slots = SHM_BAR_SLOTS + 1);
	REFUSED(cfg.timeout_ms = 1);
	REFUSED(cfg.path = "/dev/shm");
	REFUSED(cfg.path = r.path);
	rig_end(&r);
	unlink(good.path);
}

Test(bar, memory_without_a_saker_is_none)
{
	struct saker *s;
	char path[64], where[80];
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/saker-none-%d", getpid());
	snprintf(where, sizeof(where), "ivshmem:%s", path);
	cr_assert_eq(saker_open(where, "none", &s), -ENOENT);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(ftruncate(fd, 1 << 20), 0);
	cr_assert_eq(saker_open(where, "none", &s), -EPROTO);
	close(fd);
	unlink(path);
}
