/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic of the shared-memory layout: the size of an entry and of a ring, the place of each
 * ring in the fixed part of a home region, and the check that an offset from the other side lies
 * inside the region. Client and engine both use these functions, so that their layouts cannot
 * differ.
 */
#include "shm_msg.h"

#include <errno.h>
#include <string.h>

#define PAGE 4096

uint8_t
shm_log2(uint32_t n)
{
	uint8_t log2 = 1;

	while (log2 < 31 && (1u << log2) < n)
		log2++;
	return log2;
}

static uint16_t
stride(size_t need, uint16_t least)
{
	uint16_t s = least;

	while (s < need)
		s *= 2;
	return s;
}

uint16_t
shm_sqe_stride(uint32_t max_sge, uint32_t max_inline)
{
	size_t sges, inl = max_inline;

	if (max_sge > RD_MAX_SGE || max_inline > RD_MAX_INLINE)
		return 0;
	sges = max_sge * sizeof(struct rd_sge);
	return stride(SHM_SQE_BASE + (sges > inl ? sges : inl), SHM_SQE_UNIT);
}

uint16_t
shm_rqe_stride(uint32_t max_sge)
{
	if (max_sge > RD_MAX_SGE)
		return 0;
	return stride(SHM_RQE_BASE + max_sge * sizeof(struct rd_sge), SHM_RQE_UNIT);
}

bool
shm_ring_ok(const struct shm_ring_at *at, uint64_t size, size_t least_stride)
{
	uint64_t bytes;

	if (at->log2_count < 1 || at->log2_count > 24 || at->stride < least_stride ||
		(at->stride & (at->stride - 1)) != 0 || at->entries % SHM_LINE != 0 ||
		at->cons % sizeof(struct shm_cons) != 0)
		return false;
	bytes = shm_ring_bytes(at);
	return bytes <= size && at->entries <= size - bytes && size >= sizeof(struct shm_cons) &&
	       at->cons <= size - sizeof(struct shm_cons);
}

/* Takes `bytes`, rounded up to whole lines, from the running offset *at and stores the place in
 * *out. Returns false if the region is too small. */
static bool
shm_take(uint64_t *at, uint64_t size, uint64_t bytes, uint64_t *out)
{
	bytes = (bytes + SHM_LINE - 1) & ~(uint64_t)(SHM_LINE - 1);
	if (*at > size || bytes > size - *at)
		return false;
	*out = *at;
	*at += bytes;
	return true;
}

static bool
lay_ring(uint64_t *at, uint64_t size, struct shm_ring_at *ring, uint32_t entries, uint16_t each)
{
	memset(ring, 0, sizeof(*ring));
	ring->stride = each;
	ring->log2_count = shm_log2(entries);
	return shm_take(at, size, sizeof(struct shm_cons), &ring->cons) &&
	       shm_take(at, size, shm_ring_bytes(ring), &ring->entries);
}

int
shm_header_lay(struct shm_header *h, uint64_t size, const struct shm_home *home)
{
	uint64_t at = sizeof(*h), end = size & ~(uint64_t)(PAGE - 1);
	uint64_t mem_len = (home->mem_len + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	bool ok;

	memset(h, 0, sizeof(*h));
	if (home->nstages < 1 || home->nstages > SHM_MAX_STAGES || home->mem_len > size ||
		mem_len > end)
		return -EINVAL;
	h->version = SHM_VERSION;
	h->nstages = home->nstages;
	h->size = size;
	end -= mem_len;
	h->mem = mem_len != 0 ? end : 0;
	h->mem_len = mem_len;
	ok = lay_ring(&at, end, &h->cmd, home->commands, sizeof(struct shm_msg)) &&
	     lay_ring(&at, end, &h->evt, home->events, sizeof(struct shm_msg));
	for (uint32_t i = 0; ok && i < home->nstages; i++)
		ok = lay_ring(&at, end, &h->doorbell[i], home->doorbells,
			     sizeof(struct shm_doorbell)) &&
		     lay_ring(&at, end, &h->event[i], home->cq_events, sizeof(struct shm_cq_event));
	if (!ok)
		return -ENOSPC;
	h->heap = at;
	h->heap_len = end - at;
	return 0;
}
