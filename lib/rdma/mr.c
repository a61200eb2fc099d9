/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks accesses to memory regions (RFC 5040 7.2; RFC 5041 7.1: STag, stream, rights, wrap,
 * bounds, in this order, on every access) and finds and copies their bytes.
 */
#include "rdma_priv.h"

#include <string.h>

#include "../base/check.h"
#include "../base/mem.h"

static inline enum rd_fault
region_check(const struct rd_mr *mr, const struct rd_pd *pd, uint32_t qpn, uint64_t addr,
	uint64_t len, uint32_t need)
{
	if (len == 0)
		return RD_OK;
	if (mr == NULL || !__atomic_load_n(&mr->valid, __ATOMIC_RELAXED))
		return RD_FAULT_STAG;
	if (mr->pd != pd || (mr->bound_qpn != 0 && mr->bound_qpn != qpn))
		return RD_FAULT_PD;
	if ((mr->access & need) != need)
		return RD_FAULT_ACCESS;
	return range_check(mr->base, mr->len, addr, len);
}

enum rd_fault
rd_mr_check(const struct rd_mr_table *t, const struct rd_pd *pd, uint32_t qpn, uint32_t stag,
	uint64_t addr, uint64_t len, uint32_t need, struct rd_mr **out)
{
	struct rd_mr *mr = mr_lookup(t, stag);

	*out = mr;
	if (mr != NULL && mr->window && len > 0)
		return mr->pd == pd ? RD_FAULT_ACCESS : RD_FAULT_PD;
	return region_check(mr, pd, qpn, addr, len, need);
}

enum rd_fault
rd_remote_check(const struct rd_mr_table *t, const struct rd_qp *qp, uint32_t stag, uint64_t *addr,
	uint64_t len, uint32_t need, struct rd_mr **out)
{
	struct rd_mr *mr = mr_lookup(t, stag);
	enum rd_fault fault;

	*out = mr;
	if (len == 0)
		return RD_OK;
	if (mr != NULL && mr->window)
		fault = rd_mw_check((const struct rd_mw *)mr, qp, stag, addr, len, need, out);
	else
		fault = region_check(mr, qp->pd, qp->qpn, *addr, len, need);
	if (fault == RD_OK && (qp->access & need) != need)
		return RD_FAULT_ACCESS;
	return fault;
}

bool
rd_span_find(const struct rd_mr_table *t, const struct rd_qp *qp, uint32_t stag, uint32_t need,
	bool remote, struct rd_span *out)
{
	const struct rd_mr *mr = mr_lookup(t, stag);

	if (mr == NULL || mr->window || mr->nextents != 1 || (mr->access & need) != need ||
		!__atomic_load_n(&mr->valid, __ATOMIC_RELAXED) || mr->pd != qp->pd ||
		(mr->bound_qpn != 0 && mr->bound_qpn != qp->qpn) ||
		(remote && (qp->access & need) != need))
		return false;
	*out = (struct rd_span){mr->base, mr->len, mr->extents->host, stag};
	return true;
}

/* Returns the last extent that starts at or before `off`. */
static const struct rd_extent *
extent_of(const struct rd_mr *mr, uint64_t off)
{
	uint32_t low = 0, high = mr->nextents;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (mr->extents[mid].off <= off)
			low = mid;
		else
			high = mid;
	}
	return &mr->extents[low];
}

uint8_t *
rd_mr_at(const struct rd_mr *mr, uint64_t addr, uint64_t *run)
{
	uint64_t off = addr - mr->base;
	const struct rd_extent *e = mr->nextents == 1 ? mr->extents : extent_of(mr, off);

	*run = e->len - (off - e->off);
	return e->host + (off - e->off);
}

/* Stores n bytes (1 to 8) at `dst`, which is aligned to 8 bytes, in ascending order. Each store is
 * aligned, so none of them is torn. */
static void
store_tail(uint8_t *dst, const uint8_t *src, size_t n)
{
	if (n == 8) {
		uint64_t v;

		memcpy(&v, src, 8);
		__atomic_store_n((uint64_t *)dst, v, __ATOMIC_RELEASE);
		return;
	}
	if (n & 4) {
		uint32_t v;

		memcpy(&v, src, 4);
		__atomic_store_n((uint32_t *)dst, v, __ATOMIC_RELEASE);
		dst += 4;
		src += 4;
	}
	if (n & 2) {
		uint16_t v;

		memcpy(&v, src, 2);
		__atomic_store_n((uint16_t *)dst, v, __ATOMIC_RELEASE);
		dst += 2;
		src += 2;
	}
	if (n & 1)
		__atomic_store_n(dst, *src, __ATOMIC_RELEASE);
}

/* Copies `len` bytes so that the last ones become visible last, because programs poll the last byte
 * of a buffer. memcpy() may store in any order, so it copies all but the last aligned word, which
 * follows with release semantics. */
void
rd_copy(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t tail = ((uintptr_t)(dst + len - 1) & 7) + 1;

	if (tail > len) { /* all bytes lie in one word and do not begin it */
		while (len-- > 0)
			__atomic_store_n(dst++, *src++, __ATOMIC_RELEASE);
		return;
	}
	memcpy(dst, src, len - tail);
	store_tail(dst + (len - tail), src + (len - tail), tail);
}

void
rd_mr_write(const struct rd_mr *mr, uint64_t addr, const void *src, size_t len)
{
	const uint8_t *s = src;

	while (len > 0) {
		uint64_t run;
		uint8_t *d = rd_mr_at(mr, addr, &run);
		size_t n = run < len ? (size_t)run : len;

		rd_copy(d, s, n);
		addr += n;
		s += n;
		len -= n;
	}
}

void
rd_mr_read(const struct rd_mr *mr, uint64_t addr, void *dst, size_t len)
{
	uint8_t *d = dst;

	while (len > 0) {
		uint64_t run;
		const uint8_t *s = rd_mr_at(mr, addr, &run);
		size_t n = run < len ? (size_t)run : len;

		memcpy(d, s, n);
		addr += n;
		d += n;
		len -= n;
	}
}

uint64_t
rd_mr_read_sum(const struct rd_mr *mr, uint64_t addr, void *dst, size_t len)
{
	uint64_t sum = 0;

	for (size_t at = 0; at < len;) {
		uint64_t run, part;
		const uint8_t *s = rd_mr_at(mr, addr + at, &run);
		size_t n = run < len - at ? (size_t)run : len - at;

		part = sk_sum_copy(0, (uint8_t *)dst + at, s, n);
		sum = sk_sum_add(sum, at & 1 ? sk_sum_odd(part) : part);
		at += n;
	}
	return sum;
}

const uint8_t *
rd_mr_missing(const struct rd_mr *mr, uint64_t *addr, uint64_t len, uint64_t *run)
{
	while (len > 0) {
		const uint8_t *p = rd_mr_at(mr, *addr, run), *missing;
		uint64_t n = SK_MIN(*run, len);

		missing = sk_probe_range(p, n);
		if (missing != NULL) {
			*run -= (uint64_t)(missing - p);
			*addr += (uint64_t)(missing - p);
			return missing;
		}
		*addr += n;
		len -= n;
	}
	return NULL;
}

bool
rd_fetch(const struct rd_ops *ops, void *ctx, struct rd_qp *qp, const struct rd_mr *mr,
	uint64_t addr, uint64_t len, uint64_t ahead)
{
	uint64_t first = addr, run;
	const uint8_t *at;

	if (ops->fetch == NULL)
		return true;
	at = rd_mr_missing(mr, &addr, len, &run);
	if (at == NULL)
		return true;
	ops->fetch(ctx, qp, at, SK_MIN(run, SK_MAX(ahead, len) - (addr - first)));
	return false;
}
