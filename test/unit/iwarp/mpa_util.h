/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the MPA tests: repeatable random numbers, counted slices, and a model of MPA that works
 * one byte at a time. */
#ifndef TEST_MPA_UTIL_H
#define TEST_MPA_UTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/iwarp/mpa.h"
#include "../../support/need.h"

/* xorshift64* */
static inline uint32_t
rnd(uint64_t *state, uint32_t below)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return (uint32_t)((x * 0x2545f4914f6cdd1dull) >> 33) % below;
}

/* ---- Slices in memory of exactly their size, so that AddressSanitizer detects overruns ---- */

static long slices_live;

static inline struct tcp_slice *
slice_new(const uint8_t *data, uint32_t len)
{
	struct tcp_slice *s = calloc(1, sizeof(*s));
	uint8_t *copy = malloc(len + !len);

	if (len > 0)
		memcpy(copy, data, len);
	s->data = copy;
	s->len = len;
	slices_live++;
	return s;
}

static inline void
slices_free(void *ctx, struct tcp_slice *chain)
{
	while (chain != NULL) {
		struct tcp_slice *next = chain->next;

		memset((void *)(uintptr_t)chain->data, 0xdd, chain->len);
		free((void *)(uintptr_t)chain->data);
		free(chain);
		slices_live--;
		chain = next;
	}
}

/* ---- The model: a stream that grows byte by byte by the rules of RFC 5044 4 ---- */

struct model {
	bool crc, markers;
	uint32_t pos; /* of the next byte */
	uint8_t *out;
	size_t len;
	uint32_t sum;      /* bitwise CRC32C of the current FPDU */
	bool header_known; /* the length field of the current FPDU has a position */
	uint32_t header;
};

static inline void
model_raw(struct model *m, uint8_t b)
{
	m->out[m->len++] = b;
	m->pos++;
	m->sum ^= b;
	for (int i = 0; i < 8; i++)
		m->sum = m->sum & 1 ? m->sum >> 1 ^ 0x82f63b78u : m->sum >> 1;
}

static inline void
model_byte(struct model *m, uint8_t b)
{
	if (m->markers && m->pos % 512 == 0) {
		uint32_t back = m->header_known ? m->pos - m->header : 0;

		model_raw(m, 0);
		model_raw(m, 0);
		model_raw(m, (uint8_t)(back >> 8));
		model_raw(m, (uint8_t)back);
	}
	if (!m->header_known) {
		m->header_known = true;
		m->header = m->pos;
	}
	model_raw(m, b);
}

/* Appends an FPDU. Returns its stream bytes. */
static inline uint32_t
model_fpdu(struct model *m, const uint8_t *ulpdu, uint32_t len)
{
	size_t start = m->len;
	uint32_t sum;

	m->sum = ~0u;
	m->header_known = false;
	model_byte(m, (uint8_t)(len >> 8));
	model_byte(m, (uint8_t)len);
	for (uint32_t i = 0; i < len; i++)
		model_byte(m, ulpdu[i]);
	for (uint32_t i = len + 2; i % 4 != 0; i++)
		model_byte(m, 0);
	/* A marker that is due here precedes the CRC, which covers it. */
	if (m->markers && m->pos % 512 == 0) {
		uint32_t back = m->pos - m->header;

		model_raw(m, 0);
		model_raw(m, 0);
		model_raw(m, (uint8_t)(back >> 8));
		model_raw(m, (uint8_t)back);
	}
	sum = m->crc ? ~m->sum : 0;
	for (int i = 0; i < 4; i++)
		model_raw(m, (uint8_t)(sum >> 8 * i));
	return (uint32_t)(m->len - start);
}

/* ---- Start-up ---- */

/* Makes an initiator that has received a reply: flags byte, revision, the two halves of the word
 * with IRD and ORD. Returns what mpa_startup_input() does. */
static inline int
replied(struct mpa_startup *s, const struct mpa_offer *o, uint8_t flags, uint8_t revision,
	uint16_t high, uint16_t low)
{
	uint8_t buf[MPA_STARTUP_MAX] = "MPA ID Rep Frame", out[MPA_STARTUP_MAX];

	buf[16] = flags;
	buf[17] = revision;
	buf[19] = flags & 0x10 ? 4 : 0;
	buf[20] = (uint8_t)(high >> 8);
	buf[21] = (uint8_t)high;
	buf[22] = (uint8_t)(low >> 8);
	buf[23] = (uint8_t)low;
	mpa_startup_init(s, true, o);
	need(mpa_request_emit(s, out, NULL, 0) > 0);
	return mpa_startup_input(s, buf, MPA_STARTUP_LEN + buf[19]);
}

#endif
