/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of open Falcon connections (Falcon 6.5, 9.2.2.3; doc/falcon-cm.md, section 7). The
 * receiver chooses the SPI and the key of the packets that it receives. It changes them after a
 * number of packets, after a time, and when its device key changes. The receiver accepts packets
 * under both SPIs from before it sends the new one until some time after the peer has confirmed it;
 * so no packet is lost. Then the receiver frees the old key. A peer that does not confirm in time
 * loses the connection.
 *
 * One timer of a connection serves all of these events and also the deadline of the exchange, for
 * the timer of the start-up is freed. After a rotation of the device key, the keys of a limited
 * number of connections change in each turn.
 */
#include <errno.h>
#include <string.h>

#include "../../../base/log.h"
#include "../../../base/mem.h"
#include "falcon_priv.h"

/* From the peer's confirmation to the end of the old key. It is many round trips: a packet that was
 * sealed with the old key has arrived by then, or is lost. */
#define RETIRE_NS   1000000000ull
#define AGAIN_NS    1000000000ull /* from a change of keys that failed to the next attempt */
#define ALARM_NS    1000000000ull /* least time between two log messages about wrong SPIs */
#define TIMERS      32            /* most timers that a turn handles */
#define SWEEP       64            /* connections that a turn checks after a rotation */
#define SPREAD_STEP 16            /* steps over which the connections' changes of keys spread */

static void
due_at(struct eng_falcon *f, uint64_t at)
{
	f->keys_due = SK_MIN(f->keys_due, at);
	f->due = SK_MIN(f->due, at);
}

void
eng_falcon_keys_arm(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	uint64_t at = SK_MIN(fc->rekey_at, fc->retire_at);

	at = SK_MIN(at, rofx_deadline(fc->out.x));
	sk_timer_set(&eng_falcon_of(t)->wheel, &fc->timer, at);
	due_at(eng_falcon_of(t), at);
}

/* Returns the time of the next change of keys: the configured time, or up to an eighth earlier, so
 * that not all connections change their keys at once. */
static uint64_t
next_change(const struct eng_transport *t, const struct eng_falcon_conn *fc)
{
	uint64_t ns = t->e->cfg.falcon.rekey_ns;

	if (fc->generation != eng_falcon_of(t)->device->generation)
		return t->now;
	if (ns == 0)
		return SK_NEVER;
	return t->now + ns - ns / 8 * (fc->cid % SPREAD_STEP) / SPREAD_STEP;
}

void
eng_falcon_keys_start(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	fc->rx_left = t->e->cfg.falcon.rekey_packets;
	fc->key_since = t->now;
	fc->retire_at = SK_NEVER;
	fc->rekey_at = next_change(t, fc);
	eng_falcon_keys_arm(t, fc);
}

void
eng_falcon_keys_stop(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	sk_timer_stop(&eng_falcon_of(t)->wheel, &fc->timer);
	psp_sa_destroy(fc->prev_sa);
	fc->prev_sa = NULL;
}

/* The change begins immediately, or after the end of a change that is in progress. If the peer has
 * not confirmed that one yet, eng_falcon_key_taken() sets the time. */
void
eng_falcon_key_worn(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	fc->rekey_at = fc->prev_sa == NULL ? t->now : fc->retire_at;
	eng_falcon_keys_arm(t, fc);
}

/* ---- The receive key, with which the peer seals ---- */

/* Sends the new SPI and key to the peer. A self-connected QP uses them immediately. Returns 0 or
 * -errno. */
static int
hand_out(struct eng_transport *t, struct eng_falcon_conn *fc, const struct rofx_sa *next)
{
	struct psp_sa *sa;

	if (!fc->self)
		return rofx_rekey(fc->out.x, t->now, next);
	sa = psp_sa_create(eng_falcon_of(t)->crypto, next->version, next->spi, next->key);
	if (sa == NULL)
		return -ENOMEM;
	psp_sa_destroy(fc->tx_sa);
	fc->tx_sa = sa;
	fc->tx_psp.spi = next->spi;
	fc->iv = (struct psp_iv){0};
	return 0;
}

/* Creates a new SPI and key and sends them to the peer. Returns NULL when that fails. */
static struct psp_sa *
falcon_keys_offer(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct rofx_sa next = {
		.version = psp_sa_version(fc->rx_sa), .spi = psp_device_spi(f->device)};
	struct psp_sa *sa = NULL;

	if (next.spi == 0)
		return NULL;
	if (next.version != PSP_NO_CRYPTO)
		psp_derive_key(f->crypto, next.key, psp_device_key(f->device, next.spi), next.spi,
			next.version);
	sa = psp_sa_create(f->crypto, next.version, next.spi, next.key);
	if (sa != NULL && hand_out(t, fc, &next) < 0) {
		psp_sa_destroy(sa);
		sa = NULL;
	}
	explicit_bzero(next.key, sizeof(next.key));
	return sa;
}

static void
rekey(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	struct psp_sa *sa = falcon_keys_offer(t, fc);

	if (sa == NULL) {
		fc->rekey_at = t->now + AGAIN_NS;
		return;
	}
	fc->prev_sa = fc->rx_sa;
	fc->rx_sa = sa;
	fc->key_since = t->now;
	psp_rx_rotate(&fc->accept, eng_falcon_of(t)->device, psp_sa_spi(sa));
	fc->generation = eng_falcon_of(t)->device->generation;
	fc->rx_left = t->e->cfg.falcon.rekey_packets;
	fc->rekey_at = SK_NEVER; /* the exchange has a deadline for the peer's confirmation */
	if (fc->self)
		eng_falcon_key_taken(t, fc);
}

void
eng_falcon_key_taken(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	sk_count(t->counters, ENG_FALCON_REKEYED);
	fc->retire_at = t->now + RETIRE_NS;
	fc->rekey_at = SK_MAX(next_change(t, fc), fc->retire_at);
}

static void
falcon_keys_retire(struct eng_falcon_conn *fc)
{
	psp_sa_destroy(fc->prev_sa);
	fc->prev_sa = NULL;
	psp_rx_settle(&fc->accept);
	fc->retire_at = SK_NEVER;
}

/* ---- The send key, which the peer has chosen ---- */

int
eng_falcon_take_key(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	const struct rofx_sa *tx = rofx_tx(fc->out.x);
	struct psp_sa *sa = psp_sa_create(eng_falcon_of(t)->crypto, tx->version, tx->spi, tx->key);

	if (sa == NULL)
		return -ENOMEM;
	psp_sa_destroy(fc->tx_sa);
	fc->tx_sa = sa;
	fc->tx_psp.spi = tx->spi;
	fc->iv = (struct psp_iv){0};
	return rofx_rekeyed(fc->out.x);
}

/* ---- Packets with a wrong SPI ---- */

/* eng_falcon_rx() counts each such packet when it drops it. This side cannot repair a peer that
 * seals with a key that it never received or should not use any more, so a log message reports it
 * to the operator. Any host can send such packets, so there is at most one message per second. */
void
eng_falcon_spi_wrong(
	struct eng_transport *t, const struct eng_falcon_conn *fc, const struct wire_psp *psp)
{
	char peer[SK_ADDR_STRLEN];

	if (t->now < eng_falcon_of(t)->alarm_at)
		return;
	eng_falcon_of(t)->alarm_at = t->now + ALARM_NS;
	sk_count(t->counters, ENG_FALCON_SPI_TOLD);
	sk_log(SK_LOG_WARNING, "Falcon: CID %06x, from %s: SPI %08x is not its own (%08x)", fc->cid,
		sk_addr_str(&fc->raddr, peer), psp->spi, psp_sa_spi(fc->rx_sa));
}

/* ---- The device key ---- */

/* Rotates the device key by the steps of Falcon 9.2.2.3. The last step of a rotation is performed
 * at the beginning of the next one. */
static void
rotate(struct eng_transport *t)
{
	struct eng_falcon *f = eng_falcon_of(t);

	psp_device_settle(f->device);
	psp_device_rotate(f->device);
	sk_count(t->counters, ENG_FALCON_DEVICE_KEY);
	__atomic_store_n(&f->key_since, t->now, __ATOMIC_RELAXED);
	f->rotate_at = t->now + t->e->cfg.falcon.device_key_ns;
	f->sweep = 0;
}

static void
device_due(struct eng_transport *t)
{
	struct eng_falcon *f = eng_falcon_of(t);
	uint64_t at;

	if (t->now >= f->rotate_at)
		rotate(t);
	for (unsigned i = 0; i < SWEEP && f->sweep < f->fresh; i++) {
		struct eng_falcon_conn *fc = &f->conns[f->sweep++];

		if (fc->fa != NULL && fc->generation != f->device->generation)
			eng_falcon_key_worn(t, fc);
	}
	at = f->sweep < f->fresh ? t->now : f->rotate_at;
	sk_timer_set(&f->wheel, &f->device_timer, at);
	due_at(f, at);
}

/* ---- Timers ---- */

void
eng_falcon_keys_init(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = eng_falcon_of(t);
	uint64_t ns = t->e->cfg.falcon.device_key_ns;

	sk_wheel_init(&f->wheel, now);
	f->sweep = UINT32_MAX;
	f->key_since = now;
	f->rotate_at = f->keys_due = ns == 0 ? SK_NEVER : now + ns;
	sk_timer_set(&f->wheel, &f->device_timer, f->rotate_at);
}

static void
falcon_keys_fire(void *ctx, struct sk_timer *timer, uint64_t now)
{
	struct eng_transport *t = ctx;
	struct eng_falcon_conn *fc = SK_CONTAINER(timer, struct eng_falcon_conn, timer);

	if (timer == &eng_falcon_of(t)->device_timer) {
		device_due(t);
		return;
	}
	if (fc->retire_at <= now)
		falcon_keys_retire(fc);
	if (fc->rekey_at <= now)
		rekey(t, fc);
	eng_falcon_expired(t, fc->c); /* handles the exchange's deadline and sends its frames */
}

void
eng_falcon_keys_poll(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = eng_falcon_of(t);

	if (now < f->keys_due)
		return;
	sk_wheel_poll(&f->wheel, now, TIMERS, falcon_keys_fire, t);
	f->keys_due = f->wheel.armed > 0 ? sk_wheel_next(&f->wheel) : SK_NEVER;
}
