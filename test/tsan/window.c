/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A type 1 window that two QPs on their own lcores bind while the peers of two others use it, for
 * ThreadSanitizer. Each region has an address, a length and rights that identify it. Exits with
 * status 1 if an access was granted that belongs to no single bind, or if a region's count is wrong
 * at the end.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/rdma/rdma.h"

#define REGIONS 4
#define BINDS   50000u
#define LEN     4096

static const struct rd_pd pd;
static struct rd_mr region[REGIONS];
static struct rd_extent extent[REGIONS];
static uint8_t bytes[REGIONS][LEN];
static struct rd_mr_table *t;
static struct rd_mw window;
static uint32_t slot; /* the window's STag without its key */
static bool over;     /* atomic */
static uint64_t granted, refused;

static void
need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "window: %s\n", what);
	exit(1);
}

/* Returns the bind to region n, from byte 64 n on, 64 (n + 1) bytes long. */
static struct rd_bind
bind_of(unsigned n, uint8_t key)
{
	return (struct rd_bind){
		.stag = slot | key,
		.region = region[n].stag,
		.addr = region[n].base + 64 * n,
		.len = 64 * (n + 1),
		.access = n % 2 ? RD_ACC_REMOTE_READ : RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE,
	};
}

/* One binder uses even keys and the other odd ones: the slower binder finds the window changed, but
 * never with its own key. */
static void *
binder_main(void *arg)
{
	unsigned odd = arg != NULL;
	const struct rd_qp qp = {.pd = &pd, .qpn = 10 + odd};

	for (unsigned i = 0; i < BINDS; i++) {
		struct rd_bind b;
		enum rd_bind_result r;

		b = bind_of(i % REGIONS, (uint8_t)(2 * i + odd));
		if (i % 7 == 0)
			b.len = 0;
		while ((r = rd_mw_bind(t, &qp, &b)) == RD_BIND_BUSY)
			;
		need(r == RD_BIND_DONE || r == RD_BIND_CHANGED, "a bind was refused");
	}
	return NULL;
}

static void
look(const struct rd_qp *qp, uint32_t stag)
{
	for (unsigned n = 0; n < REGIONS; n++) {
		uint64_t addr = region[n].base + 64 * n + 63, len = 64 * n + 1;
		struct rd_mr *mr;

		if (rd_remote_check(t, qp, stag, &addr, len, RD_ACC_REMOTE_READ, &mr) == RD_OK) {
			need(mr == &region[n] && addr == region[n].base + 64 * n + 63,
				"the bytes of another bind");
			__atomic_fetch_add(&granted, 1, __ATOMIC_RELAXED);
		} else {
			__atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
		}
		addr = region[n].base + 64 * n;
		need(rd_remote_check(t, qp, stag, &addr, 64 * n + 65, RD_ACC_REMOTE_READ, &mr) !=
				RD_OK,
			"more than was bound");
		addr = region[n].base + 64 * n;
		need(n % 2 == 0 || rd_remote_check(t, qp, stag, &addr, 1, RD_ACC_REMOTE_WRITE,
					   &mr) != RD_OK,
			"the rights of another bind");
	}
}

static void *
user_main(void *arg)
{
	const struct rd_qp qp = {
		.pd = &pd, .qpn = 20, .access = RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE};

	do {
		look(&qp, slot);
		look(&qp, __atomic_load_n(&window.mr.stag, __ATOMIC_RELAXED));
	} while (!__atomic_load_n(&over, __ATOMIC_RELAXED));
	return NULL;
}

int
main(void)
{
	const struct sk_key key = {{1, 2}};
	pthread_t user[2], binder[2];
	uint32_t bound = 0;

	t = rd_mr_table_create(8, &key);
	need(t != NULL, "no table");
	rd_mw_init(&window, &pd, RD_MW_TYPE_1);
	need(rd_mr_add(t, &window.mr, 0xff) == 0, "no place");
	slot = window.mr.stag & ~0xffu;
	for (unsigned n = 0; n < REGIONS; n++) {
		extent[n] = (struct rd_extent){.len = LEN, .host = bytes[n]};
		region[n] = (struct rd_mr){.access = RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND,
			.pd = &pd,
			.base = 0x10000 * (n + 1),
			.len = LEN,
			.valid = true,
			.nextents = 1,
			.extents = &extent[n]};
		need(rd_mr_add(t, &region[n], 0) == 0, "no place");
	}
	for (unsigned i = 0; i < 2; i++) {
		pthread_create(&user[i], NULL, user_main, NULL);
		pthread_create(&binder[i], NULL, binder_main, i ? &over : NULL);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(binder[i], NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(user[i], NULL);
	for (unsigned n = 0; n < REGIONS; n++)
		bound += region[n].windows;
	need(bound == window.mr.valid, "a region's count is wrong");
	rd_mw_fini(&window);
	for (unsigned n = 0; n < REGIONS; n++)
		need(rd_mr_close(&region[n]), "a region is still held");
	need(granted > 0 && refused > 0, "nothing was granted, or nothing refused");
	rd_mr_table_destroy(t);
	printf("%llu granted, %llu refused\n", (unsigned long long)granted,
		(unsigned long long)refused);
	return 0;
}
