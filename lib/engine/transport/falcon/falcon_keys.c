/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of live Falcon connections (Falcon 6.5, 9.2.2.3; doc/falcon-cm.md, section 7). Who receives
 * hands out SPI and key, so he also changes them: after so many packets, after so long, and when
 * his device key changes. He takes packets under both SPIs from before the peer hears of the new
 * one until some time after it said that it uses it; so nothing is lost. The old one then goes, and
 * a peer that never says so is given up.
 *
 * One timer of a connection serves all of this, also the exchange's own deadline, since the
 * start-up's is gone. A rotation of the device key goes over the connections a few at a time.
 */
#include <errno.h>
#include <string.h>

#include "../../../base/log.h"
#include "../../../base/mem.h"
#include "falcon_priv.h"

#define RETIRE_NS                                                                                  \
	1000000000ull /* many round trips: what was sealed before has come, or is lost             \
		       */
#define AGAIN_NS    1000000000ull
#define ALARM_NS    1000000000ull
#define TIMERS      32 /* that a turn works off */
#define SWEEP       64 /* connections that a turn looks at after a rotation */
#define SPREAD_STEP 16 /* connections do not change keys all at once */

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

	at = SK_MIN(at, rofx_deadline(fc->x));
	sk_timer_set(&eng_falcon_of(t)->wheel, &fc->timer, at);
	due_at(eng_falcon_of(t), at);
}

/* When the next change is due: never later than configured, by up to an eighth sooner. */
static uint64_t
next_change(const struct eng_transport *t, const struct eng_falcon_conn *fc)
{
	uint64_t ns = t->e->cfg.falcon.rekey_ns;

	if (fc->generation != eng_falcon_of(t)->device.generation)
		return t->now;
	if (ns == 0)
		return SK_NEVER;
	return t->now + ns - ns / 8 * (fc->cid % SPREAD_STEP) / SPREAD_STEP;
}

void
eng_falcon_keys_start(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	fc->rx_left = t->e->cfg.falcon.rekey_packets;
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

/* As soon as it can be. While a change is under way that is not known yet: eng_falcon_key_taken()
 * looks again. */
void
eng_falcon_key_worn(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	fc->rekey_at = fc->prev_sa == NULL ? t->now : fc->retire_at;
	eng_falcon_keys_arm(t, fc);
}

/* ---- Ours: what the peer seals with ---- */

/* A QP that is its own peer has them at once. */
static int
hand_out(struct eng_transport *t, struct eng_falcon_conn *fc, const struct rofx_sa *next)
{
	struct psp_sa *sa;

	if (!fc->self)
		return rofx_rekey(fc->x, t->now, next);
	sa = psp_sa_create(eng_falcon_of(t)->crypto, next->version, next->spi, next->key);
	if (sa == NULL)
		return -ENOMEM;
	psp_sa_destroy(fc->tx_sa);
	fc->tx_sa = sa;
	fc->tx_psp.spi = next->spi;
	fc->iv = (struct psp_iv){0};
	return 0;
}

/* A new SPI and key, offered to the peer. NULL: not now. */
static struct psp_sa *
falcon_keys_offer(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct rofx_sa next = {
		.version = psp_sa_version(fc->rx_sa), .spi = psp_device_spi(&f->device)};
	struct psp_sa *sa = NULL;

	if (next.spi == 0)
		return NULL;
	if (next.version != PSP_NO_CRYPTO)
		psp_derive_key(f->crypto, next.key, psp_device_key(&f->device, next.spi), next.spi,
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
	psp_rx_rotate(&fc->accept, &eng_falcon_of(t)->device, psp_sa_spi(sa));
	fc->generation = eng_falcon_of(t)->device.generation;
	fc->rx_left = t->e->cfg.falcon.rekey_packets;
	fc->rekey_at = SK_NEVER; /* the exchange has its own deadline for the answer */
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

/* ---- The peer's: what we seal with ---- */

int
eng_falcon_take_key(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	const struct rofx_sa *tx = &rofx_agreed(fc->x)->tx;
	struct psp_sa *sa = psp_sa_create(eng_falcon_of(t)->crypto, tx->version, tx->spi, tx->key);

	if (sa == NULL)
		return -ENOMEM;
	psp_sa_destroy(fc->tx_sa);
	fc->tx_sa = sa;
	fc->tx_psp.spi = tx->spi;
	fc->iv = (struct psp_iv){0};
	return rofx_rekeyed(fc->x);
}

/* ---- What does not fit ---- */

/* Each is counted where it is dropped. That a peer should seal with a key which it was not given,
 * or was given and should have left, nobody can mend here: the operator sees it. Anybody can send
 * such packets, so he sees it once a second at most. */
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

/* ---- The device's ---- */

/* The steps of 9.2.2.3; the last one of the rotation before is the first of this. */
static void
rotate(struct eng_transport *t)
{
	struct eng_falcon *f = eng_falcon_of(t);

	psp_device_settle(&f->device);
	psp_device_rotate(&f->device);
	sk_count(t->counters, ENG_FALCON_DEVICE_KEY);
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

		if (fc->fa != NULL && fc->generation != f->device.generation)
			eng_falcon_key_worn(t, fc);
	}
	at = f->sweep < f->fresh ? t->now : f->rotate_at;
	sk_timer_set(&f->wheel, &f->device_timer, at);
	due_at(f, at);
}

/* ---- Time ---- */

void
eng_falcon_keys_init(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = eng_falcon_of(t);
	uint64_t ns = t->e->cfg.falcon.device_key_ns;

	sk_wheel_init(&f->wheel, now);
	f->sweep = UINT32_MAX;
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
	eng_falcon_expired(t, fc->c); /* the exchange's time, and what it has to say */
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
