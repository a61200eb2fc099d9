/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The longest message, 4 GiB - 1 bytes (RFC 5040 4.4, 5041 4.3: lengths and offsets of 32 bits).
 * Regions of that size consist of extents that all refer to the same mebibyte of memory, which
 * contains the message's last bytes at the end.
 */
#include "rdmap_pair.h"

#include "../../../lib/base/mem.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define PIECE (1u << 20)
#define LEN   0xffffffffu

static struct end e[2];
static struct rd_mr mr[2];
static uint8_t *host[2];

static void
start(void)
{
	struct iw_params params = end_params();

	params.emss = 65000;
	for (int k = 0; k < 2; k++) {
		end_init(&e[k], &params, k == 0);
		host[k] = malloc(PIECE);
		cr_assert(host[k]);
		for (uint32_t i = 0; i < PIECE; i++)
			host[k][i] = pattern((uint8_t)k, i);
		mr[k] = (struct rd_mr){
			.access = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE,
			.pd = &e[k].pd,
			.base = (uint64_t)0 - LEN,
			.len = LEN,
			.valid = true,
			.nextents = LEN / PIECE + 1};
		mr[k].extents = calloc(mr[k].nextents, sizeof(struct rd_extent));
		cr_assert(mr[k].extents);
		for (uint32_t i = 0; i < mr[k].nextents; i++)
			mr[k].extents[i] = (struct rd_extent){
				(uint64_t)i * PIECE, SK_MIN(PIECE, LEN - i * PIECE), host[k]};
		cr_assert_eq(rd_mr_add(e[k].mrs, &mr[k], 0), 0);
	}
}

static void
run(void)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (int k = 0; k < 2; k++) {
			size_t n;

			iw_tx(e[k].q, 0, 16);
			n = e[k].wire_len;
			e[k].wire_len = 0;
			end_feed(&e[1 - k], e[k].wire, n, 0, NULL);
			iw_space(e[k].q, (uint32_t)n);
			moved |= n > 0;
		}
	}
}

static void
finish(const struct end *sink_end, const uint8_t *sink, const uint8_t *source)
{
	struct iw_info info;

	cr_assert_eq(e[0].nsend, 1);
	cr_assert_eq(e[0].send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(e[0].send_wc[0].byte_len, LEN);
	iw_get_info(sink_end->q, &info);
	cr_assert_eq(info.bytes_in, LEN);
	cr_assert_eq(memcmp(sink, source, PIECE), 0);
	for (int k = 0; k < 2; k++) {
		cr_assert_eq(e[k].errors, 0);
		cr_assert(end_fini(&e[k]));
		free(mr[k].extents);
		free(host[k]);
	}
}

Test(rdmap_large, a_send_of_4_gib_less_one, .timeout = 300)
{
	start();
	wr_sge(end_recv(&e[1], 5), &mr[1], 0, LEN);
	wr_sge(end_post(&e[0], RD_SEND, 1), &mr[0], 0, LEN);
	run();
	cr_assert_eq(e[1].nrecv, 1);
	cr_assert_eq(e[1].recv_wc[0].byte_len, LEN);
	finish(&e[1], host[1], host[0]);
}

Test(rdmap_large, a_read_of_4_gib_less_one, .timeout = 300)
{
	struct rd_wr *wr;

	start();
	wr = end_post(&e[0], RD_READ, 1);
	wr_sge(wr, &mr[0], 0, LEN);
	wr->rkey = mr[1].stag;
	wr->remote_addr = mr[1].base;
	run();
	finish(&e[0], host[0], host[1]);
}
