/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PSP around Falcon: keys derived from a device key (PSP Architecture Specification), sealing and
 * opening of packets by AES-GCM or AES-GMAC, IVs that are timestamps and yet unique, SPIs and their
 * rotation, and the acceptance checks of Falcon Transport 9.2.2.1 to 9.2.2.3. The header itself is
 * wire_psp in ../wire/falcon.h. Nothing here is per Falcon connection but struct psp_rx.
 *
 * The receiver of a direction hands out the SPI and the key that belongs to it, since it can derive
 * the key again from the SPI alone; the sender uses both. doc/falcon-wire.md says how IVs are
 * composed and what the mode without crypto is.
 */
#ifndef SAKER_PSP_H
#define SAKER_PSP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/reason.h"
#include "../wire/falcon.h"

#define PSP_DEVICE_KEY_LEN 32
#define PSP_KEY_MAX        32
#define PSP_SPI_PHASE      0x80000000u /* which device key an SPI belongs to */

#define PSP_REASONS(X)                                                                             \
	X(PSP_BAD_ICV, SK_WARNING, "a packet whose integrity check value is wrong (9.2.2.1)")      \
	X(PSP_WRONG_VERSION, SK_WARNING, "a packet sealed otherwise than was agreed")              \
	X(PSP_REPLAYED, SK_NOTICE, "a packet older than the replay margin allows (9.2.2.2)")       \
	X(PSP_WRONG_SPI, SK_WARNING, "a packet under another connection's SPI (9.2.2.3)")          \
	X(PSP_WRONG_COOKIE, SK_WARNING, "a packet whose cookie is not the connection's (9.2.2.3)")

SK_REASONS_DECLARE(psp, PSP_NONE, PSP_REASONS)

/* ---- Keys ---- */

/* What the cipher's code works with. Belongs to one thread; the owner destroys it after its SAs. */
struct psp_crypto;

/* NULL: no memory, or a processor that the library does not know. */
struct psp_crypto *psp_crypto_create(void);
void psp_crypto_destroy(struct psp_crypto *c);

/* Bytes of a key: 16 or 32; 0 for PSP_NO_CRYPTO. */
unsigned psp_key_len(uint8_t version);
/* Writes psp_key_len(version) bytes: AES-256-CMAC in counter mode over SPI and version. GMAC has
 * the key of the GCM with the same length. */
void psp_derive_key(struct psp_crypto *c, uint8_t *key,
	const uint8_t device_key[PSP_DEVICE_KEY_LEN], uint32_t spi, uint8_t version);

/* A security association: one direction's SPI and key, expanded. About 1 KiB. */
struct psp_sa;

/* `key`: psp_key_len(version) bytes, copied. NULL: no memory, or no such version. */
struct psp_sa *psp_sa_create(
	struct psp_crypto *c, uint8_t version, uint32_t spi, const uint8_t *key);
/* Wipes the key. */
void psp_sa_destroy(struct psp_sa *sa);
uint32_t psp_sa_spi(const struct psp_sa *sa);
uint8_t psp_sa_version(const struct psp_sa *sa);
/* Before opening: 0, -PSP_WRONG_SPI, or -PSP_WRONG_VERSION for a packet that is sealed otherwise
 * than was agreed. */
int psp_sa_check(const struct psp_sa *sa, const struct wire_psp *h);

/* ---- Packets ---- */

/* A piece of what is encrypted: `len` bytes from src to dst, which are the same or do not overlap.
 * Pieces are taken in order and may have any length. */
struct psp_part {
	const uint8_t *src;
	uint8_t *dst;
	uint32_t len;
};

struct psp_pkt {
	const struct psp_sa *sa;
	const uint8_t *hdr; /* PSP header, complete, with the SA's SPI; then what stays readable */
	uint32_t hdr_len;   /* of both: PSP_LEN + crypt_offset * PSP_CRYPT_UNIT */
	const struct psp_part *parts;
	uint32_t nparts;
	uint8_t *icv; /* PSP_ICV_LEN bytes: written by seal, compared by open */
	bool ok;      /* set by open */
};

/* A datagram that lies in one piece, in place: `len` bytes from the PSP header, which is `h`, to
 * the end of the ICV. wire_psp_parse() accepted it, or would. */
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
 * Seals or opens `n` packets. AES-GCM encrypts the parts and authenticates all; AES-GMAC copies the
 * parts (nothing, when in place) and authenticates all; PSP_NO_CRYPTO copies only and opens
 * anything. open returns how many are ok; of the others, what was written to dst is to be thrown
 * away.
 *
 * Sealing many at once, after their headers were written, is cheaper for small packets than
 * sealing each as it is built: a header that was just written is slow to be read back.
 */
void psp_seal(struct psp_crypto *c, const struct psp_pkt *pkts, unsigned n);
unsigned psp_open(struct psp_crypto *c, struct psp_pkt *pkts, unsigned n);

/* ---- Sending: IVs ---- */

/* Of one SPI, zeroed when its SA is made. */
struct psp_iv {
	uint64_t first, last;
	bool used;
};

/* The IV of a packet that leaves at `now` (ns, any clock): later than all before it, whatever the
 * clock does. false: the SPI is used up, another is needed before anything can be sent. */
bool psp_iv_next(struct psp_iv *g, uint64_t now, uint64_t *iv);

/* ---- Receiving: SPIs, rotation (9.2.2.3) ---- */

/* What a receiving device hands out, and "Global" of section 9.2.2.3. */
struct psp_device {
	uint8_t key[2][PSP_DEVICE_KEY_LEN]; /* by PSP_SPI_PHASE */
	uint32_t generation;                /* current; its lowest bit is the phase of new SPIs */
	bool allow_previous;                /* AllowPreviousSPIGen */
	bool match_cookie;                  /* PCID matching */
	uint32_t handed_out;                /* SPIs of this generation */
};

/* Fresh random keys; generation 0. */
void psp_device_init(struct psp_device *d);
/* Starts the next generation with a fresh key; packets of the last one are still accepted, those of
 * the one before cannot be any more, since their key is gone. */
void psp_device_rotate(struct psp_device *d);
/* Ends the last generation. */
void psp_device_settle(struct psp_device *d);
/* A new SPI of the current generation, never handed out before in it; 0: rotate first. */
uint32_t psp_device_spi(struct psp_device *d);
/* The device key of an SPI. */
const uint8_t *psp_device_key(const struct psp_device *d, uint32_t spi);

/* ---- Receiving: what a connection accepts (9.2.1, 9.2.2) ---- */

/* The peer's time (Remote Time), as its packets under one SPI tell it. */
struct psp_remote {
	uint64_t time; /* highest IV accepted, modulo 2^64 */
	uint64_t at;   /* ns: ours then */
	bool known;    /* false: the first packet sets it */
};

struct psp_rx {
	uint32_t spi, prev_spi; /* 0: not configured, none */
	uint32_t generation;    /* of spi */
	/* Nobody vouches for an IV (PSP_NO_CRYPTO): Remote Time goes on no faster than our clock
	 * does, so that one wrong IV cannot make all that follow look replayed. */
	bool bounded;
	uint64_t cookie; /* PCID */
	uint64_t margin; /* replay protection margin, in IV units: psp_rx_margin() */
	/* A key that is new has seen nothing that could be replayed: its time starts anew. */
	struct psp_remote remote, prev_remote;
};

/* ns to IV units. More than the network reorders, much less than a window of PSNs lasts. */
uint64_t psp_rx_margin(uint64_t ns);
/* A connection starts with an SPI of the device's current generation; `bounded` is the owner's. */
void psp_rx_init(struct psp_rx *rx, const struct psp_device *d, uint32_t spi, uint64_t margin);
/* It got another SPI; the one that it had stays acceptable until psp_rx_settle(), by the time that
 * was known for it. */
void psp_rx_rotate(struct psp_rx *rx, const struct psp_device *d, uint32_t spi);
void psp_rx_settle(struct psp_rx *rx);

/* 9.2.2.2 (of the current SPI) and 9.2.2.3, the rules alone. */
bool psp_rx_fresh(const struct psp_rx *rx, uint64_t iv);
bool psp_rx_spi_ok(const struct psp_rx *rx, const struct psp_device *d, uint32_t spi);

/*
 * Replay, SPI and cookie in this order, for a packet that psp_open() found whole and that came at
 * `now` (ns). Returns 0 and takes note of the time, or -reason; a packet that is refused changes
 * nothing, is not acknowledged and its piggybacked fields are not looked at.
 */
int psp_rx_accept(
	struct psp_rx *rx, const struct psp_device *d, const struct wire_psp *h, uint64_t now);

#endif
