/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive path of a datagram in the order of an engine: PSP header, security association,
 * opening, replay and SPI checks, Falcon and RDMA headers. The datagram has any bytes; or it was
 * sealed here and then changed, and must not open. Between datagrams clocks jump and keys rotate. A
 * refused datagram leaves the connection's state unchanged.
 */
#include "fuzz.h"

#include "../../lib/falcon/psp.h"
#include "../../lib/wire/rof.h"

static struct psp_crypto *crypto;
static struct psp_sa *sas[5];
static const uint8_t versions[] = {
	PSP_AES_GCM_128, PSP_AES_GCM_256, PSP_GMAC_128, PSP_GMAC_256, PSP_NO_CRYPTO};

static void
set_up(void)
{
	static const uint8_t secret[PSP_KEY_MAX] = {1, 2, 3};

	crypto = psp_crypto_create();
	CLAIM(crypto != NULL);
	for (unsigned i = 0; i < 5; i++)
		sas[i] = psp_sa_create(crypto, versions[i], i + 1, secret);
}

/* Returns true when the datagram was opened and accepted. */
static bool
receive(struct psp_rx *rx, const struct psp_device *d, uint8_t *p, size_t len)
{
	struct psp_rx before = *rx;
	const struct psp_remote *remote;
	struct wire_falcon f;
	struct wire_psp h;
	struct wire_rof r;
	struct psp_part part;
	struct psp_pkt pkt;
	int n = wire_psp_parse(&h, p, len);

	if (n < 0 || h.spi == 0 || h.spi > 5 || psp_sa_check(sas[h.spi - 1], &h) != 0)
		return false;
	psp_pkt_in_place(&pkt, &part, sas[h.spi - 1], p, (uint32_t)len, &h);
	CLAIM(pkt.hdr_len + part.len + wire_psp_icv_len(h.version) == len);
	if (psp_open(crypto, &pkt, 1) == 0)
		return false;
	if (psp_rx_accept(rx, d, &h, 0) != 0) {
		CLAIM(memcmp(&before, rx, sizeof(before)) == 0);
		return false;
	}
	remote = h.spi == rx->prev_spi && h.spi != rx->spi ? &rx->prev_remote : &rx->remote;
	CLAIM(remote->known && (int64_t)(remote->time - h.iv) >= 0);
	len -= (size_t)n + wire_psp_icv_len(h.version);
	p += n;
	n = wire_falcon_parse(&f, p, len);
	if (n >= 0)
		wire_rof_parse(&r, p + n, len - (size_t)n);
	return true;
}

static void
spoilt(struct fuzz_input *in, struct psp_rx *rx, const struct psp_device *d, uint64_t iv)
{
	uint8_t which = (uint8_t)fuzz_take_rest(in, 1) % 5, *p;
	uint32_t len =
		PSP_LEN + 4 + (uint32_t)fuzz_take_rest(in, 1) + wire_psp_icv_len(versions[which]);
	struct wire_psp h = {.next = PSP_NEXT_FALCON,
		.version = versions[which],
		.crypt_offset = 1,
		.spi = which + 1u,
		.iv = iv};
	uint32_t at = (uint32_t)fuzz_take_rest(in, 2) % len;
	uint8_t flip = (uint8_t)fuzz_take_rest(in, 1);
	struct psp_part part;
	struct psp_pkt pkt;

	p = calloc(1, len);
	CLAIM(p != NULL);
	wire_psp_emit(p, &h);
	psp_pkt_in_place(&pkt, &part, sas[which], p, len, &h);
	psp_seal(crypto, &pkt, 1);
	p[at] ^= flip;
	if (receive(rx, d, p, len))
		CLAIM(flip == 0 || versions[which] == PSP_NO_CRYPTO);
	free(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .len = size};
	struct psp_device d = {0};
	struct psp_iv ivs = {0};
	struct psp_rx rx;
	uint64_t now = 0, iv = 0;

	if (crypto == NULL)
		set_up();
	psp_rx_init(&rx, &d, 1 + (uint32_t)fuzz_take_rest(&in, 1) % 5, psp_rx_margin(1000000));
	while (in.at < in.len) {
		uint64_t before = iv;
		size_t len;
		uint8_t *p;

		switch (fuzz_take_rest(&in, 1) % 6) {
		case 0:
			now += fuzz_take_rest(&in, 8);
			break;
		case 1:
			if (psp_iv_next(&ivs, now, &iv))
				CLAIM(ivs.first == iv || iv - ivs.first > before - ivs.first);
			break;
		case 2:
			d.generation++;
			d.allow_previous = fuzz_take_rest(&in, 1) & 1;
			psp_rx_rotate(&rx, &d, 1 + (uint32_t)fuzz_take_rest(&in, 1) % 5);
			break;
		case 3:
			len = (size_t)fuzz_take_rest(&in, 1) % (in.len - in.at + 1);
			p = exact_copy(in.p + in.at, len);
			receive(&rx, &d, p, len);
			free(p);
			in.at += len;
			break;
		default:
			spoilt(&in, &rx, &d, iv);
		}
	}
	return 0;
}
