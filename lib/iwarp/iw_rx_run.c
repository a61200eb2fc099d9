/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path for small Writes that arrive one behind the other: FPDUs without markers, each of
 * them a whole Write within one slice, into a region with one extent. Their common fields are
 * checked once, the region is looked up once for consecutive FPDUs with one STag, and the counters
 * and the position in the stream change once. The first FPDU that a guard rejects takes the general
 * path (iw_rx.c), which also determines what is wrong with an invalid one.
 */
#include "iw_priv.h"
#include "mpa_rx_priv.h"

#include <endian.h>
#include <string.h>

#include "../wire/word.h"

/* The longest ULPDU: a longer one gains by the other routines of CRC32C, and by less per byte. */
#define RUN_ULPDU_MAX 256

/* The two octets of control of a Write that is one segment (RFC 5041 4.1, RFC 5040 4.1), with
 * nothing in the reserved bits. */
#define WHOLE_WRITE (0xc100u | 0x40u | RDMAP_WRITE)

struct rx_run {
	struct rd_span target;
	uint32_t fpdus, bytes; /* bytes: payload */
	uint32_t last;         /* payload of the last FPDU */
};

/* Returns the running CRC of `len` bytes, a multiple of 4. */
static inline uint32_t
run_crc(const uint8_t *p, uint32_t len)
{
	uint32_t crc = SK_CRC32C_INIT, half;

	for (; len >= 8; p += 8, len -= 8)
		crc = sk_crc32c_word(crc, wire_word64(p));
	if (len == 0)
		return crc;
	memcpy(&half, p, sizeof(half));
	return _mm_crc32_u32(crc, half);
}

/* Checks the CRC of the next FPDU, which is in the first slice. */
static inline bool
run_crc_good(struct mpa_rx *r, const uint8_t *p, uint32_t len)
{
	const struct tcp_slice *s = r->head;
	uint32_t covered = len - MPA_CRC_LEN, field;

	r->whole = s->len == len;
	memcpy(&field, p + covered, sizeof(field));
	return le32toh(field) ==
	       sk_crc32c_final(r->whole && s->crc_len == covered ? s->crc : run_crc(p, covered));
}

/* Returns where the payload goes if the target is valid, in one piece and present, else NULL. */
static inline uint8_t *
run_target(const struct iw_qp *q, struct rx_run *run, uint32_t stag, uint64_t to, uint32_t n)
{
	uint8_t *at;

	if ((run->target.host == NULL || run->target.stag != stag) &&
		!rd_span_find(
			q->st->ops.rd.mrs, q->rd, stag, RD_ACC_REMOTE_WRITE, true, &run->target))
		return NULL;
	at = rd_span_at(&run->target, to, n);
	if (at == NULL || (uintptr_t)at % SK_PROBE_PAGE + n > SK_PROBE_PAGE || !sk_probe(at))
		return NULL;
	return at;
}

/* Places the FPDU at `p`, of which `have` bytes are here. Returns its stream bytes, or 0 if it
 * needs the general path. */
static inline uint32_t
run_fpdu(struct iw_qp *q, struct rx_run *run, const uint8_t *p, uint32_t have)
{
	uint32_t ulpdu_len, len, n;
	uint64_t head;
	uint8_t *at;

	if (have < MPA_LEN_FIELD + DDP_TAGGED_LEN)
		return 0;
	head = wire_be64(p);
	ulpdu_len = (uint32_t)(head >> 48);
	len = mpa_plain_len(ulpdu_len);
	if ((head >> 32 & 0xffff) != WHOLE_WRITE || ulpdu_len <= DDP_TAGGED_LEN ||
		ulpdu_len > RUN_ULPDU_MAX || have < len)
		return 0;
	if (!run_crc_good(&q->mrx, p, len))
		return 0;
	n = ulpdu_len - DDP_TAGGED_LEN;
	at = run_target(q, run, (uint32_t)head, wire_be64(p + 8), n);
	if (at == NULL) {
		q->mrx.checked = true;
		return 0;
	}
	rd_place(at, p + MPA_LEN_FIELD + DDP_TAGGED_LEN, n);
	run->fpdus++;
	run->bytes += n;
	run->last = n;
	return len;
}

/* Processes the first slice. Returns the stream bytes that were consumed. */
static uint32_t
run_slice(struct iw_qp *q, struct rx_run *run)
{
	struct mpa_rx *r = &q->mrx;
	const uint8_t *p = r->head->data + r->off;
	uint32_t have = r->head->len - r->off, used = 0, len;

	while ((len = run_fpdu(q, run, p + used, have - used)) > 0)
		used += len;
	r->pos += used;
	r->have -= used;
	if (used < have)
		r->off += used;
	else
		mpa_rx_release(r, used);
	return used;
}

uint32_t
iw_rx_run(struct iw_qp *q)
{
	struct mpa_rx *r = &q->mrx;
	struct rx_run run = {.fpdus = 0};
	uint32_t total = 0, used;

	if (q->hold || q->swallow_rtr || q->write_open || !r->crc || r->markers || r->checked ||
		r->no_memory || q->st->general)
		return 0;
	while (r->head != NULL && (used = run_slice(q, &run)) > 0)
		total += used;
	if (total == 0)
		return 0;
	q->info.msgs_in += run.fpdus;
	q->info.bytes_in += run.bytes;
	q->write_len = run.last;
	return total;
}
