/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PSP around Falcon: keys that derive from a device key (PSP Architecture Specification), sealing
 * and opening of packets by AES-GCM or AES-GMAC, IVs that are timestamps and unique, SPIs and their
 * rotation, and the acceptance checks of Falcon Transport 9.2.2.1 to 9.2.2.3. ../wire/falcon.h has
 * the header itself (wire_psp). Only struct psp_rx exists once per Falcon connection.
 *
 * The receiver of a direction assigns the SPI and the key that belongs to it, since it can derive
 * the key again from the SPI alone; the sender uses both. doc/falcon-wire.md describes the
 * composition of IVs and the mode without crypto.
 */
#ifndef SAKER_PSP_H
#define SAKER_PSP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/reason.h"
#include "../base/vectors.h"
#include "../wire/falcon.h"

#define PSP_DEVICE_KEY_LEN 32
#define PSP_KEY_MAX        32
#define PSP_SPI_PHASE      0x80000000u /* the bit of an SPI that selects its device key */

#define PSP_REASONS(X)                                                                             \
	X(PSP_BAD_ICV, SK_WARNING, "a packet with a wrong integrity check value (9.2.2.1)")        \
	X(PSP_WRONG_VERSION, SK_WARNING, "a packet sealed with another version than agreed")       \
	X(PSP_REPLAYED, SK_NOTICE, "a packet older than the replay margin allows (9.2.2.2)")       \
	X(PSP_WRONG_SPI, SK_WARNING, "a packet with another connection's SPI (9.2.2.3)")           \
	X(PSP_WRONG_COOKIE, SK_WARNING, "a packet with another connection's cookie (9.2.2.3)")

SK_REASONS_DECLARE(psp, PSP_NONE, PSP_REASONS)

/* ---- Keys ---- */

/* The state of the cipher library. It belongs to one thread; the owner destroys it after its
 * SAs. */
struct psp_crypto;

/* Returns NULL when memory is exhausted, or when the library does not support the processor. */
struct psp_crypto *psp_crypto_create(void);
void psp_crypto_destroy(struct psp_crypto *c);
/* Returns the kind of processor that the ciphers in use are written for: that of sk_vectors(), or
 * a lesser one if the library has no code for it. */
enum sk_vectors psp_crypto_vectors(const struct psp_crypto *c);

/* Returns the length of a key in bytes: 16 or 32, or 0 for PSP_NO_CRYPTO. */
unsigned psp_key_len(uint8_t version);
/* Writes psp_key_len(version) bytes to `key`: AES-256-CMAC in counter mode over SPI and version. A
 * GMAC version has the same key as the GCM version of its key length. */
void psp_derive_key(struct psp_crypto *c, uint8_t *key,
	const uint8_t device_key[PSP_DEVICE_KEY_LEN], uint32_t spi, uint8_t version);

/* A security association: the SPI and the expanded key of one direction. About 1 KiB, or 16 bytes
 * without crypto. */
struct psp_sa;

/* Creates an SA. `key` has psp_key_len(version) bytes, which are copied. Returns NULL when memory
 * is exhausted or `version` is unknown. */
struct psp_sa *psp_sa_create(
	struct psp_crypto *c, uint8_t version, uint32_t spi, const uint8_t *key);
/* Wipes the key and frees the SA; `sa` may be NULL. */
void psp_sa_destroy(struct psp_sa *sa);
uint32_t psp_sa_spi(const struct psp_sa *sa);
uint8_t psp_sa_version(const struct psp_sa *sa);
/* Checks a header before opening. Returns 0, -PSP_WRONG_SPI, or -PSP_WRONG_VERSION when the packet
 * is sealed with another version than the SA's. */
int psp_sa_check(const struct psp_sa *sa, const struct wire_psp *h);

/* ---- Packets ---- */

/* A piece of the encrypted part: `len` bytes from src to dst, which are equal or do not overlap.
 * Pieces are processed in order and may have any length. */
struct psp_part {
	const uint8_t *src;
	uint8_t *dst;
	uint32_t len;
};

struct psp_pkt {
	const struct psp_sa *sa;
	/* The complete PSP header with the SA's SPI, then the bytes that stay readable. */
	const uint8_t *hdr;
	uint32_t hdr_len; /* length of both in bytes: PSP_LEN + crypt_offset * PSP_CRYPT_UNIT */
	const struct psp_part *parts;
	uint32_t nparts;
	uint8_t *icv; /* PSP_ICV_LEN bytes: psp_seal() writes them, psp_open() compares them */
	bool ok;      /* set by psp_open() */
};

/* Describes a datagram that is contiguous and stays in place: `len` bytes from the PSP header,
 * which is `h` when parsed, to the end of the ICV. The datagram must be one that wire_psp_parse()
 * accepts. */
static inline void
psp_pkt_in_place(struct psp_pkt *pkt, struct psp_part *part, const struct psp_sa *sa,
	uint8_t *datagram, uint32_t len, const struct wire_psp *h)
{
	uint32_t hdr_len = PSP_LEN + (uint32_t)h->crypt_offset * PSP_CRYPT_UNIT;
	uint32_t icv_at = len - wire_psp_icv_len(h->version);

	*part = (struct psp_part){datagram + hdr_len, datagram + hdr_len, icv_at - hdr_len};
	*pkt = (struct psp_pkt){sa, datagram, hdr_len, part, 1, datagram + icv_at, false};
}

/*
 * Seal or open `n` packets. AES-GCM encrypts the parts and authenticates header and parts; AES-GMAC
 * copies the parts (nothing, when they stay in place) and authenticates header and parts;
 * PSP_NO_CRYPTO only copies, and every packet opens. psp_open() returns how many packets are ok;
 * the caller must discard the bytes at dst of the others.
 *
 * Sealing a run of small packets after all their headers were written is cheaper than sealing each
 * packet when it is built: the processor reads a header slowly that it has just written.
 */
void psp_seal(struct psp_crypto *c, const struct psp_pkt *pkts, unsigned n);
unsigned psp_open(struct psp_crypto *c, struct psp_pkt *pkts, unsigned n);

/* ---- Sending: IVs ---- */

/* IVs of one SPI: the range that a modular comparison can order. */
#define PSP_IV_SPAN (1ull << 63)

/* The state of one SPI's IVs, zeroed when its SA is created. */
struct psp_iv {
	uint64_t first, last;
	bool used;
};

/* Sets *iv to the IV of a packet that leaves at `now` (ns of any clock): greater than all IVs
 * before it, even when the clock stops or steps back. Returns false when the IVs of the SPI are
 * exhausted: the sender needs another SPI. */
static inline bool
psp_iv_next(struct psp_iv *g, uint64_t now, uint64_t *iv)
{
	uint64_t t = wire_falcon_ticks(now) << PSP_IV_COUNTER_BITS;

	if (!g->used) {
		g->used = true;
		g->first = t;
		g->last = t;
		*iv = t;
		return true;
	}
	if (t - g->first >= PSP_IV_SPAN || t - g->first <= g->last - g->first)
		t = g->last + 1;
	if (t - g->first >= PSP_IV_SPAN)
		return false;
	g->last = t;
	*iv = t;
	return true;
}

/* ---- Receiving: SPIs, rotation (9.2.2.3) ---- */

/* A receiving device: the keys from which its SPIs derive, and the "Global" state of 9.2.2.3. */
struct psp_device {
	uint8_t key[2][PSP_DEVICE_KEY_LEN]; /* indexed by PSP_SPI_PHASE */
	/* current one; its lowest bit is the phase of new SPIs */
	uint32_t generation;
	bool allow_previous; /* AllowPreviousSPIGen */
	bool match_cookie;   /* the cookie must be the connection's (PCID) */
	uint32_t handed_out; /* SPIs assigned in this generation */
};

/* Draws fresh random keys and starts generation 0. */
void psp_device_init(struct psp_device *d);
/* Starts the next generation with a fresh key. Packets of the previous generation stay acceptable;
 * those of the one before it do not, since its key is overwritten. */
void psp_device_rotate(struct psp_device *d);
/* Ends the acceptance of the previous generation. */
void psp_device_settle(struct psp_device *d);
/* Returns a new SPI of the current generation, or 0 when the generation has no more: the caller
 * must rotate first. */
uint32_t psp_device_spi(struct psp_device *d);
/* Returns the device key (PSP_DEVICE_KEY_LEN bytes) of an SPI. */
const uint8_t *psp_device_key(const struct psp_device *d, uint32_t spi);

/* ---- Receiving: what a connection accepts (9.2.1, 9.2.2) ---- */

/* Remote Time (9.2.2.2): the peer's time, as received under one SPI. */
struct psp_remote {
	uint64_t time; /* highest accepted IV, modulo 2^64 */
	uint64_t at;   /* local time (ns) when it arrived */
	bool known;    /* false: the first packet sets `time` */
};

struct psp_rx {
	uint64_t cookie; /* PCID of the connection */
	/* One per SPI: no packet under a new key can be a replay, so its time starts anew. */
	struct psp_remote prev_remote, remote;
	uint32_t spi, prev_spi; /* 0: not configured; 0: none */
	uint32_t generation;    /* generation of `spi` */
	/* IVs are not authenticated (PSP_NO_CRYPTO): Remote Time advances no faster than the local
	 * clock, so that one forged IV cannot make all later packets count as replayed. */
	bool bounded;
	uint64_t margin; /* replay protection margin in IV units, from psp_rx_margin() */
};

/* Converts a margin in ns to IV units. The margin must be longer than the network's reordering, and
 * much shorter than the duration of a PSN window. */
uint64_t psp_rx_margin(uint64_t ns);
/* Initializes a connection with an SPI of the device's current generation. The owner sets
 * `bounded`. */
void psp_rx_init(struct psp_rx *rx, const struct psp_device *d, uint32_t spi, uint64_t margin);
/* Gives the connection another SPI. The previous SPI stays acceptable, with its own Remote Time,
 * until psp_rx_settle(). */
void psp_rx_rotate(struct psp_rx *rx, const struct psp_device *d, uint32_t spi);
/* Removes the previous SPI. */
void psp_rx_settle(struct psp_rx *rx);

/* The rule of 9.2.2.3 alone. */
bool psp_rx_spi_ok(const struct psp_rx *rx, const struct psp_device *d, uint32_t spi);

/* Checks replay, SPI and cookie, in this order, of a packet that psp_open() accepted and that
 * arrived at `now` (ns). Returns 0 and updates Remote Time, or returns -reason. A packet that is
 * refused changes no state: Falcon neither acknowledges it nor processes its piggybacked fields. */
int psp_rx_accept(
	struct psp_rx *rx, const struct psp_device *d, const struct wire_psp *h, uint64_t now);

/* Returns whether a packet is one of the current SPI and generation whose IV is the newest one,
 * ahead by so little that no clock can contradict: by less than half the margin, or, after a pause,
 * than that and the time since the last packet. */
static inline bool
psp_rx_is_next(const struct psp_rx *rx, const struct psp_device *d, uint32_t spi, uint64_t iv,
	uint64_t now)
{
	uint64_t ahead = iv - rx->remote.time - 1, most = rx->margin / 2;

	if (spi != rx->spi || spi == 0 || rx->generation != d->generation || d->match_cookie ||
		!rx->remote.known)
		return false;
	if (ahead < most)
		return true;
	most += wire_falcon_ticks(now - rx->remote.at) << PSP_IV_COUNTER_BITS;
	return (int64_t)ahead >= 0 && ahead < most;
}

/* Does the same as psp_rx_accept() for a packet with psp_rx_is_next(). Returns false, and changes
 * nothing, for any other packet. */
static inline bool
psp_rx_accept_next(
	struct psp_rx *rx, const struct psp_device *d, uint32_t spi, uint64_t iv, uint64_t now)
{
	if (!psp_rx_is_next(rx, d, spi, iv, now))
		return false;
	rx->remote.time = iv;
	rx->remote.at = now;
	return true;
}

#endif
