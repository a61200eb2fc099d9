/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PSP's state: IVs of a sender; device keys, SPIs and acceptance checks of a receiver. This file
 * has no cryptography.
 *
 * An IV must never be used twice under one key: with the same nonce, GCM reveals both texts and the
 * authentication key. One rule alone ensures that: the IVs of one generator are strictly increasing
 * modulo 2^64, from the first one on, over at most half of all values. Each is the larger of "the
 * time, counter 0" and "the last IV plus 1". So a clock that stops, steps back or jumps only
 * advances the counter; when the counter overflows, it carries into the time, which is then one
 * tick of 131 ns ahead of the clock until the clock has caught up. A clock that leaps forward takes
 * the IVs with it: half the range, and the SPI with it, is exhausted sooner, and psp_iv_next() then
 * returns false and does not wrap around.
 *
 * One key has one generator. An SPI with its key is assigned once, to one peer, for one of its
 * stages. A peer that restarts has lost its SAs and requests new SPIs. A receiver that restarts
 * draws new device keys, so that even the same SPI would have another key.
 */
#include "psp.h"

#include <string.h>

#include "../base/prf.h"

SK_REASONS_DEFINE(psp, PSP_NONE, PSP_REASONS)

#define SPI_NUMBER (PSP_SPI_PHASE - 1)

void
psp_device_init(struct psp_device *d)
{
	memset(d, 0, sizeof(*d));
	sk_random(d->key, sizeof(d->key));
}

void
psp_device_rotate(struct psp_device *d)
{
	d->generation++;
	d->allow_previous = true;
	d->handed_out = 0;
	sk_random(d->key[d->generation & 1], PSP_DEVICE_KEY_LEN);
}

void
psp_device_settle(struct psp_device *d)
{
	d->allow_previous = false;
}

uint32_t
psp_device_spi(struct psp_device *d)
{
	if (d->handed_out == SPI_NUMBER)
		return 0;
	d->handed_out++; /* so that no SPI is 0 */
	return d->handed_out | (d->generation & 1 ? PSP_SPI_PHASE : 0);
}

const uint8_t *
psp_device_key(const struct psp_device *d, uint32_t spi)
{
	return d->key[(spi & PSP_SPI_PHASE) != 0];
}

uint64_t
psp_rx_margin(uint64_t ns)
{
	return wire_falcon_ticks(ns) << PSP_IV_COUNTER_BITS;
}

void
psp_rx_init(struct psp_rx *rx, const struct psp_device *d, uint32_t spi, uint64_t margin)
{
	*rx = (struct psp_rx){
		.spi = spi, .prev_spi = spi, .generation = d->generation, .margin = margin};
}

void
psp_rx_rotate(struct psp_rx *rx, const struct psp_device *d, uint32_t spi)
{
	rx->prev_spi = rx->spi;
	rx->prev_remote = rx->remote;
	rx->spi = spi;
	rx->remote.known = false;
	rx->generation = d->generation;
}

void
psp_rx_settle(struct psp_rx *rx)
{
	rx->prev_spi = rx->spi;
}

static bool
fresh(const struct psp_remote *r, uint64_t margin, uint64_t iv)
{
	return !r->known || (int64_t)(iv - (r->time - margin)) > 0;
}

bool
psp_rx_spi_ok(const struct psp_rx *rx, const struct psp_device *d, uint32_t spi)
{
	bool same_phase = ((rx->spi ^ rx->prev_spi) & PSP_SPI_PHASE) == 0;
	bool current = rx->generation == d->generation;
	bool allowed = current || (d->allow_previous && rx->generation == d->generation - 1);

	if (rx->spi == 0)
		return false;
	if (spi == rx->spi)
		return allowed;
	if (spi != rx->prev_spi || spi == 0)
		return false;
	/* The previous SPI belongs to the current one's generation, or to the one before. */
	return same_phase ? allowed : d->allow_previous && current;
}

/* Returns whether the peer's clock has advanced since the newest IV as the local clock has: within
 * a tenth of a per cent, plus the change of the network's delay. */
static bool
plausible(const struct psp_rx *rx, const struct psp_remote *r, uint64_t iv, uint64_t now)
{
	uint64_t ns = now - r->at;

	return iv - r->time <= psp_rx_margin(ns + ns / 1024) + rx->margin / 2;
}

int
psp_rx_accept(struct psp_rx *rx, const struct psp_device *d, const struct wire_psp *h, uint64_t now)
{
	bool previous = h->spi == rx->prev_spi && h->spi != rx->spi;
	struct psp_remote *r = previous ? &rx->prev_remote : &rx->remote;

	if (!fresh(r, rx->margin, h->iv))
		return -PSP_REPLAYED;
	if (!psp_rx_spi_ok(rx, d, h->spi))
		return -PSP_WRONG_SPI;
	if (d->match_cookie && h->vc != rx->cookie)
		return -PSP_WRONG_COOKIE;
	if (!r->known ||
		((int64_t)(h->iv - r->time) > 0 && (!rx->bounded || plausible(rx, r, h->iv, now))))
		*r = (struct psp_remote){.time = h->iv, .at = now, .known = true};
	return 0;
}
