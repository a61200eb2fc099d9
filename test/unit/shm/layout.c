/* SPDX-License-Identifier: BSD-3-Clause */
/* The places of a home region's rings, and the validation of offsets from the other side. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/shm/shm_msg.h"

Test(shm_layout, strides_hold_what_was_asked_and_no_more_than_an_entry)
{
	cr_assert_eq(shm_sqe_stride(0, 0), SHM_SQE_UNIT);
	cr_assert_eq(shm_sqe_stride(1, 24), SHM_SQE_UNIT);
	cr_assert_eq(shm_sqe_stride(1, 25), 2 * SHM_SQE_UNIT);
	cr_assert_eq(shm_sqe_stride(5, 88), 2 * SHM_SQE_UNIT);
	cr_assert_eq(shm_sqe_stride(6, 0), 4 * SHM_SQE_UNIT);
	cr_assert_eq(shm_sqe_stride(13, 216), 4 * SHM_SQE_UNIT);
	cr_assert_eq(shm_sqe_stride(1, 217), 8 * SHM_SQE_UNIT);
	cr_assert_eq(shm_sqe_stride(RD_MAX_SGE, RD_MAX_INLINE), 8 * SHM_SQE_UNIT);
	cr_assert_eq(shm_sqe_stride(RD_MAX_SGE + 1, 0), 0);
	cr_assert_eq(shm_sqe_stride(1, RD_MAX_INLINE + 1), 0);
	cr_assert_eq(shm_rqe_stride(0), 32);
	cr_assert_eq(shm_rqe_stride(1), 32);
	cr_assert_eq(shm_rqe_stride(2), 64);
	cr_assert_eq(shm_rqe_stride(3), 64);
	cr_assert_eq(shm_rqe_stride(4), 128);
	cr_assert_eq(shm_rqe_stride(RD_MAX_SGE), 512);
	cr_assert_eq(shm_rqe_stride(RD_MAX_SGE + 1), 0);
}

Test(shm_layout, log2_rounds_up_and_is_at_least_one)
{
	cr_assert_eq(shm_log2(0), 1);
	cr_assert_eq(shm_log2(2), 1);
	cr_assert_eq(shm_log2(3), 2);
	cr_assert_eq(shm_log2(1024), 10);
	cr_assert_eq(shm_log2(1025), 11);
	cr_assert_eq(shm_log2(0xffffffffu), 31);
}

Test(shm_layout, a_ring_outside_its_region_is_refused)
{
	const struct shm_ring_at good = {
		.entries = 4096, .cons = 64, .stride = 64, .log2_count = 4};
	struct shm_ring_at at = good;

	cr_assert(shm_ring_ok(&at, 4096 + 1024, 64));
	cr_assert_not(shm_ring_ok(&at, 4096 + 1023, 64), "one byte too long");
	cr_assert_not(shm_ring_ok(&at, 4096 + 1024, 65), "entries too small");
	at.entries = ~(uint64_t)63;
	cr_assert_not(shm_ring_ok(&at, 1 << 20, 64), "offset that wraps");
	at = good;
	at.cons = ~(uint64_t)63;
	cr_assert_not(shm_ring_ok(&at, 1 << 20, 64));
	at = good;
	at.cons = 65;
	cr_assert_not(shm_ring_ok(&at, 1 << 20, 64), "unaligned");
	at = good;
	at.entries = 4100;
	cr_assert_not(shm_ring_ok(&at, 1 << 20, 64));
	at = good;
	at.log2_count = 0;
	cr_assert_not(shm_ring_ok(&at, 1 << 20, 64), "two laps of one entry look alike");
	at.log2_count = 60;
	cr_assert_not(shm_ring_ok(&at, 1 << 20, 64));
	at = good;
	at.stride = 96;
	cr_assert_not(shm_ring_ok(&at, 1 << 20, 64), "stride not a power of two");
}

static void
overlap_free(const struct shm_header *h, uint64_t size)
{
	struct {
		uint64_t from, to;
	} part[3 * 2 * (2 + 2 * SHM_MAX_STAGES)];
	unsigned n = 0;
	const struct shm_ring_at *rings[2 + 2 * SHM_MAX_STAGES];
	unsigned nrings = 0;

	rings[nrings++] = &h->cmd;
	rings[nrings++] = &h->evt;
	for (unsigned i = 0; i < h->nstages; i++) {
		rings[nrings++] = &h->doorbell[i];
		rings[nrings++] = &h->event[i];
	}
	for (unsigned i = 0; i < nrings; i++) {
		cr_assert(shm_ring_ok(rings[i], size, 8), "ring %u", i);
		part[n].from = rings[i]->entries;
		part[n++].to = rings[i]->entries + shm_ring_bytes(rings[i]);
		part[n].from = rings[i]->cons;
		part[n++].to = rings[i]->cons + SHM_LINE;
	}
	part[n].from = 0;
	part[n++].to = sizeof(*h);
	part[n].from = h->heap;
	part[n++].to = h->heap + h->heap_len;
	part[n].from = h->mem_len != 0 ? h->mem : size;
	part[n++].to = h->mem_len != 0 ? h->mem + h->mem_len : size;
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			cr_assert(part[i].from >= part[j].to || part[j].from >= part[i].to,
				"parts %u and %u overlap", i, j);
}

Test(shm_layout, parts_of_a_home_region_do_not_overlap)
{
	static struct shm_header h;

	static const uint32_t counts[] = {1, 2, 3, 8, SHM_MAX_STAGES};

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		for (uint64_t mem = 0; mem <= 65536; mem += 65536) {
			const struct shm_home home = {.nstages = counts[i],
				.commands = 16,
				.events = 60,
				.doorbells = 100,
				.cq_events = 33,
				.mem_len = mem};

			cr_assert_eq(shm_header_lay(&h, 1 << 20, &home), 0);
			cr_assert_eq(h.magic, 0, "the magic is the engine's, last of all");
			cr_assert_eq(h.mem_len, mem);
			cr_assert_eq(h.mem % 4096, 0);
			cr_assert_eq(1u << h.evt.log2_count, 64);
			overlap_free(&h, 1 << 20);
		}
}

Test(shm_layout, a_region_too_small_is_refused)
{
	static struct shm_header h;
	struct shm_home home = {
		.nstages = 1, .commands = 16, .events = 16, .doorbells = 16, .cq_events = 16};

	cr_assert_eq(shm_header_lay(&h, 16384, &home), -ENOSPC);
	cr_assert_eq(shm_header_lay(&h, 65536, &home), 0);
	home.mem_len = 65536 + 1;
	cr_assert_eq(shm_header_lay(&h, 65536, &home), -EINVAL);
	home.mem_len = ~0ull;
	cr_assert_eq(shm_header_lay(&h, 65536, &home), -EINVAL);
	home.mem_len = 0;
	home.nstages = SHM_MAX_STAGES + 1;
	cr_assert_eq(shm_header_lay(&h, 1 << 20, &home), -EINVAL);
	home.nstages = 0;
	cr_assert_eq(shm_header_lay(&h, 1 << 20, &home), -EINVAL);
}

Test(shm_layout, a_message_about_a_connection_ends_with_its_private_data)
{
	struct shm_msg m = {.op = SHM_CONNECT};

	cr_assert_eq(shm_cm_bytes(&m), SHM_CM_BYTES);
	m.body.cm.private_len = 7;
	cr_assert_eq(shm_cm_bytes(&m), SHM_CM_BYTES + 7);
	m.body.cm.private_len = UINT16_MAX; /* the other side may write anything */
	cr_assert_eq(shm_cm_bytes(&m), SHM_CM_BYTES + SHM_PRIVATE_MAX);
	cr_assert_leq(shm_cm_bytes(&m), sizeof(m));
	cr_assert(shm_has_cm(SHM_LISTEN) && shm_has_cm(SHM_EV_CONNECT_REQUEST) &&
		  shm_has_cm(SHM_EV_DISCONNECTED));
	cr_assert(!shm_has_cm(SHM_QP_CREATE) && !shm_has_cm(SHM_EV_QP_FATAL) && !shm_has_cm(0));
}
