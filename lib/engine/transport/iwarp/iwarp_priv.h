/* SPDX-License-Identifier: BSD-3-Clause */
/* iWARP on a transport stage: the exchange of the MPA request and reply (iwarp_startup.c), and the
 * records and the credit of a bound connection (iwarp.c). */
#ifndef SAKER_ENGINE_IWARP_PRIV_H
#define SAKER_ENGINE_IWARP_PRIV_H

#include "../../../iwarp/mpa.h"
#include "../link.h"

/* The stage's part: t->part[ENG_IWARP]. */
struct eng_iwarp {
	uint64_t mpa_counters[mpa_reason_count];
};

/* The state of a start-up beside struct eng_startup: su->part. */
struct eng_mpa {
	struct mpa_startup startup;
	struct tcp_slice *held; /* the bytes that arrived after the start-up frame: FPDUs */
	/* This side does not send FPDUs until the start-up timer expires. */
	bool holds;
	struct tcp_tuple asked; /* active: the tuple in ENG_CT_CONNECT, for a second attempt */
	uint16_t private_len;   /* active: the program's private data */
	uint8_t private_data[SHM_PRIVATE_MAX];
};

static inline struct eng_mpa *
eng_mpa_of(const struct eng_conn *c)
{
	return c->su->part;
}

/* ---- iwarp_startup.c: functions of eng_link_iwarp ---- */

bool eng_mpa_begins(const struct eng_transport *t, const struct tcp_slice *chain);
int eng_mpa_listen(struct eng_transport *t, struct eng_conn *c);
int eng_mpa_connect(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m);
void eng_mpa_connected(struct eng_transport *t, struct eng_conn *c);
bool eng_mpa_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain);
int eng_mpa_accept(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
int eng_mpa_reject(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
void eng_mpa_expired(struct eng_transport *t, struct eng_conn *c);
void eng_mpa_retry(const struct eng_conn *c, struct eng_ctl *m);
void eng_mpa_abandon(struct eng_transport *t, struct eng_conn *c);
void eng_mpa_free(struct eng_transport *t, struct eng_conn *c);

#endif
