/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaches and detaches the programs of a guest. For each slot, gw_bar_poll() compares the guest's
 * request with the slot's state and takes one step. The engine reuses a client's number once the
 * client has gone. When an attachment returns a number that another slot still holds, the other
 * slot's client has therefore gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/base/log.h"
#include "../../lib/base/mem.h"
#include "bar_priv.h"

#define ATTACH_EVERY_NS 50000000ull /* least time between two attachments of a slot */
/* After a pause of this length between two polls, Saker may have missed heartbeats itself. */
#define GAP_NS 1000000000ull
/* Bytes that one poll clears: about a millisecond, in which all machines wait. */
#define CLEAR_BYTES (4u << 20)

static void
slot_count(uint64_t *n)
{
	__atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
}

static void
slot_refuse(struct gw_bar *b, struct shm_bar_slot *shared, uint32_t want, int status)
{
	shared->status = status;
	__atomic_store_n(&shared->refused, want, __ATOMIC_RELEASE);
	slot_count(&b->refused);
}

/* Frees a slot whose client has gone from the engine. */
static void
slot_empty(struct gw_bar *b, struct gw_slot *s)
{
	struct shm_bar_slot *shared = &b->dir->slots[s - b->slots];

	/* The engine detached the client, or its heartbeat stopped: the same request is not served
	 * a second time. */
	if (__atomic_load_n(&shared->want, __ATOMIC_ACQUIRE) == s->serving)
		slot_refuse(b, shared, s->serving, -EPIPE);
	s->client = -1;
	s->leaving = s->vacated = false;
	s->serving = 0;
	__atomic_store_n(&b->clients, b->clients - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->serves, 0, __ATOMIC_RELEASE);
}

/* Returns whether the heartbeat of the slot's program is within its timeout. */
static bool
slot_lives(struct gw_bar *b, struct gw_slot *s, uint64_t now)
{
	uint32_t beat = __atomic_load_n(&b->dir->slots[s - b->slots].beat, __ATOMIC_ACQUIRE);

	if (beat != s->beat || now - b->looked > GAP_NS) {
		s->beat = beat;
		s->beat_at = now;
	}
	return now - s->beat_at < b->timeout_ns;
}

static void
slot_watch(struct gw_bar *b, struct gw_slot *s, uint64_t now)
{
	uint32_t want = __atomic_load_n(&b->dir->slots[s - b->slots].want, __ATOMIC_ACQUIRE);
	bool lives = slot_lives(b, s, now);

	if (!s->leaving && (want != s->serving || !lives || s->vacated || b->stopped)) {
		if (eng_detach(b->e, s->client) == 0)
			s->leaving = true;
		if (s->leaving && !lives)
			slot_count(&b->timed_out);
	}
	if (eng_client_gone(b->e, s->client))
		slot_empty(b, s);
}

/* Frees other slots that hold the client number of slot `by`: their clients have gone. */
static void
slot_empty_others(struct gw_bar *b, const struct gw_slot *by)
{
	for (unsigned i = 0; i < b->nslots; i++)
		if (&b->slots[i] != by && b->slots[i].client == by->client)
			slot_empty(b, &b->slots[i]);
}

static void
slot_attach(struct gw_bar *b, struct gw_slot *s, uint32_t want, uint64_t now)
{
	struct shm_bar_slot *shared = &b->dir->slots[s - b->slots];
	/* The engine closes its own when the client has gone. */
	int n, wake = s->wake < 0 ? -1 : fcntl(s->wake, F_DUPFD_CLOEXEC, 0);
	char name[SHM_NAME_MAX];

	memcpy(name, shared->name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (char *p = name; *p != '\0'; p++)
		if (*p <= ' ' || *p > '~')
			*p = '_';
	s->next_attach = now + ATTACH_EVERY_NS;
	s->cleared = 0;
	n = eng_attach_woken(b->e, name, s->home, b->slot_size, b->mem_len, wake);
	if (n < 0) {
		if (wake >= 0)
			close(wake);
		slot_refuse(b, shared, want, n);
		sk_log(SK_LOG_WARNING, "guest program %s cannot attach: %s", name, strerror(-n));
		return;
	}
	s->client = n;
	s->serving = want;
	s->beat = __atomic_load_n(&shared->beat, __ATOMIC_RELAXED);
	s->beat_at = now;
	__atomic_store_n(&b->clients, b->clients + 1, __ATOMIC_RELAXED);
	slot_count(&b->attached);
	slot_empty_others(b, s);
	__atomic_store_n(&shared->serves, want, __ATOMIC_RELEASE);
}

/* Clears the queues of a slot, *budget bytes at most. Returns whether all of them are clear. */
static bool
slot_clear(const struct gw_bar *b, struct gw_slot *s, uint64_t *budget)
{
	uint64_t left = b->slot_size - b->mem_len - s->cleared, n = SK_MIN(left, *budget);

	memset(s->home + s->cleared, 0, n);
	s->cleared += n;
	*budget -= n;
	return n == left;
}

void
gw_bar_poll(struct gw_bar *b, uint64_t now)
{
	uint64_t budget = CLEAR_BYTES;

	__atomic_store_n(&b->dir->engine_beat, b->dir->engine_beat + 1, __ATOMIC_RELEASE);
	if (__atomic_load_n(&b->cut, __ATOMIC_ACQUIRE))
		b->stopped = true;
	for (unsigned i = 0; i < b->nslots; i++) {
		struct gw_slot *s = &b->slots[i];
		const struct shm_bar_slot *shared = &b->dir->slots[i];
		uint32_t want;

		if (s->client >= 0) {
			slot_watch(b, s, now);
			continue;
		}
		want = __atomic_load_n(&shared->want, __ATOMIC_ACQUIRE);
		if (want != 0 && !b->stopped && now >= s->next_attach &&
			want != __atomic_load_n(&shared->refused, __ATOMIC_RELAXED) &&
			slot_clear(b, s, &budget))
			slot_attach(b, s, want, now);
	}
	b->looked = now;
}

void
gw_bar_vacate(struct gw_bar *b)
{
	for (unsigned i = 0; i < b->nslots; i++)
		b->slots[i].vacated = b->slots[i].client >= 0;
}

void
gw_bar_stop(struct gw_bar *b)
{
	b->stopped = true;
}

bool
gw_bar_idle(const struct gw_bar *b)
{
	return b->clients == 0;
}
