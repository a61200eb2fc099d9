/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of FPDUs from an unknown peer. It is read twice: in one slice, and in slices whose cuts
 * the first bytes of the input choose. Both must find the same FPDUs with the same bytes and the
 * same end, and free every slice.
 */
#include <stdlib.h>

#include "../../lib/base/mem.h"
#include "../../lib/iwarp/mpa.h"

static long live;

static void
check(bool ok)
{
	if (!ok)
		abort();
}

static struct tcp_slice *
slice_new(const uint8_t *data, size_t len)
{
	struct tcp_slice *s = calloc(1, sizeof(*s));
	uint8_t *copy = malloc(len);

	check(s != NULL && copy != NULL);
	memcpy(copy, data, len);
	s->data = copy;
	s->len = (uint32_t)len;
	live++;
	return s;
}

static void
slices_free(void *ctx, struct tcp_slice *chain)
{
	while (chain != NULL) {
		struct tcp_slice *next = chain->next;

		free((void *)(uintptr_t)chain->data);
		free(chain);
		live--;
		chain = next;
	}
}

struct outcome {
	uint32_t fpdus, sum;
	int end;
};

/* Reads the FPDUs that have arrived. Returns false when the stream has broken. */
static bool
read_fpdus(struct mpa_rx *r, struct outcome *o)
{
	static uint8_t ulpdu[65536];
	struct mpa_fpdu f;

	while ((o->end = mpa_rx_next(r, &f)) == 1) {
		mpa_fpdu_copy(&f, 0, ulpdu, f.ulpdu_len);
		check(f.flat == NULL || memcmp(f.flat, ulpdu, f.ulpdu_len) == 0);
		o->sum = sk_crc32c(o->sum, ulpdu, f.ulpdu_len);
		o->fpdus++;
		check(mpa_rx_done(r, &f) == f.stream_len);
	}
	return o->end == 0;
}

static struct outcome
read_stream(const uint8_t *data, size_t len, uint8_t flags, size_t cut, size_t step)
{
	struct outcome o = {0};
	struct mpa_rx r;

	mpa_rx_init(&r, flags & 1, flags & 2, slices_free, NULL);
	r.pos = flags & 4 ? 0xfffffe00u : 0;
	for (size_t at = 0; at < len;) {
		size_t n = SK_MIN(cut, len - at);

		mpa_rx_add(&r, slice_new(data + at, n));
		at += n;
		cut = 1 + (cut + step) % 1500;
		check(live <= 1 + MPA_SLICES_MAX + (long)(len / MPA_TINY));
		if (!read_fpdus(&r, &o))
			break;
	}
	mpa_rx_clear(&r);
	check(live == 0);
	return o;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct outcome whole, cut;

	if (len < 4)
		return 0;
	whole = read_stream(data + 3, len - 3, data[0], len, 0);
	cut = read_stream(data + 3, len - 3, data[0], data[1] + 1u, data[2]);
	check(whole.fpdus == cut.fpdus && whole.sum == cut.sum && whole.end == cut.end);
	return 0;
}
