/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair of iWARP QPs: see rdmap_pair.h. Errors of the harness itself abort. */
#include "rdmap_pair.h"

#include "../../../lib/base/crc32c.h"
#include "../../../lib/base/mem.h"
#include "../../support/need.h"

#include <stdlib.h>
#include <string.h>

uint8_t
pattern(uint8_t seed, uint64_t off)
{
	return (uint8_t)(off * 131 + (off >> 8) * 17 + (off >> 16) * 29 + seed);
}

/* ---- The operations of iWARP that the engine provides ---- */

static struct tcp_rec *
rec_get(void *ctx, uint32_t room)
{
	struct end *e = ctx;
	struct tcp_rec *rec;

	if (e->refuse_rec > 0) {
		e->refuse_rec--;
		return NULL;
	}
	rec = calloc(1, sizeof(*rec));
	need(rec != NULL);
	rec->data = malloc(room);
	need(rec->data != NULL);
	e->live_recs++;
	return rec;
}

static void
rec_put(void *ctx, struct tcp_rec *rec)
{
	struct end *e = ctx;

	e->live_recs--;
	free(rec->data);
	free(rec);
}

static bool
send_rec(void *ctx, struct iw_qp *q, struct tcp_rec *rec)
{
	struct end *e = ctx;

	if (e->refuse_send > 0) {
		e->refuse_send--;
		return false;
	}
	if (e->wire_len + rec->len > e->wire_cap) {
		e->wire_cap = 2 * (e->wire_len + rec->len);
		e->wire = realloc(e->wire, e->wire_cap);
		need(e->wire != NULL);
	}
	memcpy(e->wire + e->wire_len, rec->data, rec->len);
	e->wire_len += rec->len;
	e->records++;
	e->longest_record = SK_MAX(e->longest_record, rec->len);
	rec_put(ctx, rec);
	return true;
}

static void
consumed(void *ctx, struct iw_qp *q, uint32_t bytes)
{
	struct end *e = ctx;

	e->consumed += bytes;
}

static void
slice_free(void *ctx, struct tcp_slice *chain)
{
	struct end *e = ctx;

	while (chain != NULL) {
		struct tcp_slice *next = chain->next;

		e->live_slices--;
		free(chain->owner);
		free(chain);
		chain = next;
	}
}

static void
close_stream(void *ctx, struct iw_qp *q, enum iw_close how)
{
	struct end *e = ctx;

	e->closes++;
	e->close_how = how;
}

/* ---- Ends ---- */

struct iw_params
end_params(void)
{
	return (struct iw_params){
		.crc = true, .ird = 8, .ord = 8, .emss = 1448, .send_space = 1 << 20};
}

void
end_init(struct end *e, const struct iw_params *p, bool initiator)
{
	struct iw_params params = p != NULL ? *p : end_params();
	struct sk_key key = {{0x0123456789abcdefull, initiator}};

	memset(e, 0, sizeof(*e));
	rd_end_init(&e->rd_end, END_WRS, END_WCS, 64, &key);
	e->st.ctx = e;
	e->st.ops = (struct iw_ops){
		.rd = rd_end_ops(&e->rd_end),
		.rec_get = rec_get,
		.rec_put = rec_put,
		.send = send_rec,
		.consumed = consumed,
		.slice_free = slice_free,
		.close = close_stream,
	};
	e->rd = (struct rd_qp){
		.qpn = initiator ? 0x111 : 0x222,
		.state = RD_QP_INIT,
		.pd = &e->pd,
		.caps = {.sq_depth = 64, .rq_depth = 64, .max_send_sge = RD_MAX_SGE},
		.access = RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_ATOMIC,
	};
	e->q = iw_qp_create(&e->st, &e->rd);
	need(e->q != NULL);
	params.initiator = initiator;
	iw_qp_start(e->q, 0, &params);
}

void
pair_init(struct pair *p, const struct iw_params *params, uint64_t seed)
{
	end_init(&p->e[0], params, true);
	end_init(&p->e[1], params, false);
	p->rng = seed;
}

bool
end_fini(struct end *e)
{
	iw_qp_destroy(e->q);
	for (unsigned i = 0; i < e->nmw; i++)
		rd_mw_fini(&e->mw[i]);
	for (unsigned i = 0; i < e->nmr; i++) {
		for (uint32_t x = 0; x < e->mr[i]->nextents; x++)
			free(e->mr[i]->extents[x].host);
		free(e->mr[i]->extents);
		free(e->mr[i]);
	}
	rd_end_fini(&e->rd_end);
	free(e->wire);
	return e->live_recs == 0 && e->live_slices == 0 && e->st.spare == NULL;
}

bool
pair_fini(struct pair *p)
{
	bool a = end_fini(&p->e[0]), b = end_fini(&p->e[1]);

	return a && b;
}

/* ---- Memory ---- */

struct rd_mr *
end_mr(struct end *e, uint64_t base, uint64_t len, uint32_t access, unsigned extents, uint8_t seed)
{
	struct rd_mr *mr = calloc(1, sizeof(*mr));
	uint64_t off = 0;

	need(mr != NULL && e->nmr < END_MRS);
	mr->access = access;
	mr->pd = &e->pd;
	mr->base = base;
	mr->len = len;
	mr->valid = true;
	mr->nextents = extents;
	mr->extents = calloc(extents, sizeof(*mr->extents));
	need(mr->extents != NULL);
	for (unsigned i = 0; i < extents; i++) {
		struct rd_extent *x = &mr->extents[i];

		x->off = off;
		x->len = i + 1 == extents ? len - off : len / extents;
		x->host = malloc(x->len);
		need(x->host != NULL);
		for (uint64_t k = 0; k < x->len; k++)
			x->host[k] = pattern(seed, off + k);
		off += x->len;
	}
	need(rd_mr_add(e->mrs, mr, seed) == 0);
	e->mr[e->nmr++] = mr;
	return mr;
}

struct rd_mw *
end_mw(struct end *e, enum rd_mw_type type)
{
	struct rd_mw *mw = &e->mw[e->nmw++];

	need(e->nmw <= END_MWS);
	rd_mw_init(mw, &e->pd, type);
	need(rd_mr_add(e->mrs, &mw->mr, 0x80) == 0);
	return mw;
}

static void
mr_copy(const struct rd_mr *mr, uint64_t off, uint8_t *get, const uint8_t *put, size_t len)
{
	for (uint32_t x = 0; x < mr->nextents && len > 0; x++) {
		const struct rd_extent *ext = &mr->extents[x];
		size_t n;

		if (off >= ext->off + ext->len)
			continue;
		n = SK_MIN(len, (size_t)(ext->off + ext->len - off));
		if (get != NULL) {
			memcpy(get, ext->host + (off - ext->off), n);
			get += n;
		} else {
			memcpy(ext->host + (off - ext->off), put, n);
			put += n;
		}
		off += n;
		len -= n;
	}
}

void
mr_get(const struct rd_mr *mr, uint64_t off, void *dst, size_t len)
{
	mr_copy(mr, off, dst, NULL, len);
}

void
mr_put(struct rd_mr *mr, uint64_t off, const void *src, size_t len)
{
	mr_copy(mr, off, NULL, src, len);
}

bool
end_untouched(const struct end *e)
{
	for (unsigned i = 0; i < e->nmr; i++) {
		for (uint64_t k = 0; k < e->mr[i]->len; k++) {
			uint8_t got = 0;

			mr_get(e->mr[i], k, &got, 1);
			if (got != pattern((uint8_t)e->mr[i]->stag, k))
				return false;
		}
	}
	return true;
}

/* ---- Requests ---- */

struct rd_wr *
end_post(struct end *e, uint8_t opcode, uint64_t wr_id)
{
	struct rd_wr *wr = rd_end_post(&e->rd_end, opcode, wr_id);

	wr->flags = RD_SIGNALED;
	return wr;
}

struct rd_wr *
end_recv(struct end *e, uint64_t wr_id)
{
	return rd_end_recv(&e->rd_end, wr_id);
}

void
wr_sge(struct rd_wr *wr, const struct rd_mr *mr, uint64_t off, uint32_t len)
{
	wr->sge[wr->nsge++] = (struct rd_sge){mr->base + off, len, mr->stag};
}

struct rd_wr *
end_bind(struct end *e, uint64_t wr_id, const struct rd_mw *mw, const struct rd_mr *mr,
	uint64_t off, uint64_t len, uint32_t access)
{
	struct rd_wr *wr = end_post(e, RD_BIND_MW, wr_id);

	wr->rkey = (mw->mr.stag & ~0xffu) | ((mw->mr.stag + 1) & 0xff);
	wr->imm = mr->stag;
	wr->remote_addr = mr->base + off;
	wr->data = len;
	wr->compare = access;
	return wr;
}

/* ---- The wire ---- */

void
end_tx(struct end *e)
{
	for (int i = 0; i < 100000; i++) {
		enum iw_tx_result r = iw_tx(e->q, 0, 16);

		if (r == IW_TX_IDLE || r == IW_TX_BLOCKED)
			return;
	}
	abort();
}

void
end_feed(struct end *e, const uint8_t *data, size_t len, uint32_t cut, uint64_t *rng)
{
	struct tcp_slice *head = NULL, **link = &head;

	while (len > 0) {
		struct tcp_slice *s = calloc(1, sizeof(*s));
		uint32_t n = (uint32_t)len;

		need(s != NULL);
		if (cut > 0) {
			uint32_t most = 1 + rng_below(rng, cut);

			n = SK_MIN(n, most);
		}
		s->owner = malloc(n);
		need(s->owner != NULL);
		memcpy(s->owner, data, n);
		s->data = s->owner;
		s->len = n;
		e->live_slices++;
		*link = s;
		link = &s->next;
		data += n;
		len -= n;
	}
	if (head != NULL)
		iw_rx(e->q, 0, head);
}

/* Delivers a random part of the bytes that one end sent to the other. */
static bool
deliver(struct pair *p, int from)
{
	static const uint32_t cuts[] = {0, 40, 300, 1448, 9000};
	struct end *a = &p->e[from], *b = &p->e[1 - from];
	uint32_t n;

	if (a->wire_len == 0)
		return false;
	n = 1 + rng_below(&p->rng, SK_MIN((uint32_t)a->wire_len, 20000u));
	end_feed(b, a->wire, n, cuts[rng_below(&p->rng, SK_ARRAY_LEN(cuts))], &p->rng);
	memmove(a->wire, a->wire + n, a->wire_len - n);
	a->wire_len -= n;
	iw_space(a->q, n);
	return true;
}

bool
pair_run(struct pair *p)
{
	for (int i = 0; i < 1000000; i++) {
		bool moved = false;

		for (int k = 0; k < 2; k++) {
			enum iw_tx_result r = iw_tx(p->e[k].q, 0, 1 + rng_below(&p->rng, 20));

			moved |= r == IW_TX_MORE || r == IW_TX_NOBUF;
		}
		for (int k = 0; k < 2; k++)
			moved |= deliver(p, k);
		if (!moved)
			return true;
	}
	return false;
}

/* ---- The scripted peer ---- */

void
end_fpdu(struct end *e, const struct wire_ddp *d, const void *body, uint32_t len)
{
	uint8_t *buf = malloc(len + 64), hdr[DDP_MAX];
	unsigned hdr_len = wire_ddp_emit(hdr, d);
	struct mpa_writer w;
	struct mpa_tx t;

	need(buf != NULL);
	if (d->dv)
		hdr[0] = (uint8_t)((hdr[0] & ~3) | (d->dv & 3));
	if (d->rv)
		hdr[1] = (uint8_t)((hdr[1] & 0x3f) | d->rv << 6);
	mpa_tx_init(&t, true, false, 1448);
	mpa_write_begin(&w, &t, buf, hdr_len + len);
	mpa_write_put(&w, hdr, hdr_len);
	if (len > 0)
		mpa_write_put(&w, body, len);
	end_feed(e, buf, mpa_write_end(&w), 0, NULL);
	free(buf);
}

bool
end_sent(struct end *e, struct wire_ddp *d, uint8_t *body, uint32_t *len)
{
	uint32_t ulpdu, fpdu;
	int hdr;

	if (e->wire_len < MPA_LEN_FIELD)
		return false;
	ulpdu = wire_mpa_len_parse(e->wire);
	fpdu = ((MPA_LEN_FIELD + ulpdu + 3) & ~3u) + MPA_CRC_LEN;
	need(fpdu <= e->wire_len);
	need(wire_mpa_crc_parse(e->wire + fpdu - MPA_CRC_LEN) ==
		sk_crc32c_final(sk_crc32c(SK_CRC32C_INIT, e->wire, fpdu - MPA_CRC_LEN)));
	hdr = wire_ddp_parse(d, e->wire + MPA_LEN_FIELD, ulpdu);
	need(hdr > 0);
	*len = ulpdu - (uint32_t)hdr;
	memcpy(body, e->wire + MPA_LEN_FIELD + hdr, *len);
	memmove(e->wire, e->wire + fpdu, e->wire_len - fpdu);
	e->wire_len -= fpdu;
	return true;
}
