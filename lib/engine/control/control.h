/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control stage: a stage like the others, polled by one loop, that never blocks. It takes
 * clients' commands from their mailboxes, owns the registry of objects, and manages connections by
 * telling transport and engine stages what to do.
 *
 * Between it and each other stage stand two rings of struct eng_ctl * (single producer, single
 * consumer, ENG_CTL_RING entries):
 *
 *  - to_X[i]: commands (type below ENG_TC_REQUEST), which are the control stage's own; and the
 * stage's unasked messages (type from ENG_TC_REQUEST on), which come back to be freed.
 *  - from_X[i]: the commands, answered (status and what the type says filled in); and unasked
 * messages.
 *
 * No ring can be full: the control stage has at most ENG_CTL_COMMANDS unanswered commands at a
 * stage, and a stage at most ENG_CTL_UNASKED unasked messages of its own under way. A stage that
 * has none left keeps what it wanted to say (a flag on the QP, the connection or the client) and
 * says it when one comes back.
 *
 * What the stages owe it, beyond msg_priv.h:
 *
 *  - Messages of one ring are handled in order; a command is answered exactly once, perhaps later
 * than its successors.
 *  - ENG_CT_LISTEN: tuple.laddr (unspecified: every address), tuple.lport, offer (revision, CRC,
 * markers), code: backlog.
 *  - ENG_CT_CONNECT: tuple.laddr (unspecified: by the route), raddr, rport, lport 0: the transport
 * stage chooses; cookie comes back in each ENG_TC_* about it. status < 0: there is no connection
 * and nothing more will be said.
 *  - ENG_TC_REQUEST and ENG_TC_ESTABLISHED: `from` and `transport` are the sender, tuple, mpa,
 * params.emss, params.send_space. The control stage makes the other params of `mpa`. If the EMSS
 * has changed by the time of ENG_CT_BIND or ENG_CT_ACCEPT, ENG_E_EMSS tells the engine stage.
 *  - ENG_CT_ACCEPT: offer (all but the revision), private data; cookie as with ENG_CT_CONNECT.
 * ENG_TC_ESTABLISHED with that cookie follows the reply's departure.
 *  - ENG_TC_FAILED and ENG_TC_REJECTED (also for a request that nobody has accepted yet: then
 * `cookie` is 0) make `conn` invalid, but its index is not used again before the message came back:
 * so a command about `conn` that was under way meets a dead connection, never another's.
 *  - ENG_CT_BIND and ENG_CT_ACCEPT at such a dead connection: the stage tells the QP's engine stage
 * ENG_E_CLOSED (and waits for its ENG_T_RELEASE too). So from ENG_CE_QP_START on a connection
 * always ends by ENG_E_CLOSED, and the control stage hears ENG_EC_DISCONNECTED.
 *  - ENG_CT_ABORT: after its answer nothing more is said about `conn`. At a dead connection:
 * -ENOENT. A peer that has accepted hears a Terminate, others a reset.
 *  - ENG_TC_FAILED with fall_back, only after an ENG_CT_CONNECT with it: the peer closed instead of
 * answering an enhanced request (RFC 6581 10).
 *  - ENG_CE_QP_START is answered when the stage is ready for ENG_E_*; ENG_CT_BIND or ENG_CT_ACCEPT
 * is sent only then.
 *  - ENG_CE_QP_CLOSE: `how` IW_CLOSE_ORDERLY: disconnect; IW_CLOSE_ABORT: to ERR with a flush,
 * whether connected or not.
 *  - ENG_CE_QP_DEL: for a connected QP the connection is aborted and released first; no ENG_EC_*
 * about the QP comes after the answer.
 *  - ENG_CE_QP_QUERY: code: enum rd_qp_state; info.work when there is one.
 *  - ENG_EC_*: `from` and `stage` are the sender; client is set in all, qp and object as msg_priv.h
 * says; ENG_EC_DISCONNECTED: status 0 or -errno.
 *  - Before ENG_CE_CLIENT_ADD the fields of eng_client.stage[i] are filled in by the control stage:
 * doorbell, event, qps, nqps, client. QPs have sq, rq, shared and rd (state RD_QP_INIT) filled in
 * before ENG_CE_QP_ADD; CQs and SRQs are complete.
 */
#ifndef SAKER_ENGINE_CONTROL_H
#define SAKER_ENGINE_CONTROL_H

#include "../common/instance.h"

struct rte_ring;
struct rte_rcu_qsbr;

/* NULL with one sentence in `err`. */
struct eng_control *eng_control_create(
	const struct eng_control_args *args, char *err, size_t errlen);
/* After all loops have returned: frees every object, sends nothing. */
void eng_control_destroy(struct eng_control *c);

/* One turn. Returns whether there was work. */
bool eng_control_poll(struct eng_control *c, uint64_t now);
/* When it wants to be polled next though nothing arrives, ns. */
uint64_t eng_control_deadline(const struct eng_control *c);
/* [eng_reason_count] */
const uint64_t *eng_control_counters(const struct eng_control *c);

/* As eng_attach_flat(), eng_detach(), eng_client_gone(), eng_totals() (the counts of objects),
 * eng_qps(), eng_neighbors(). */
int eng_control_attach_flat(
	struct eng_control *c, const char *name, void *base, size_t size, size_t mem_len);
int eng_control_detach(struct eng_control *c, int client);
bool eng_control_client_gone(struct eng_control *c, int client);
void eng_control_totals(const struct eng_control *c, struct eng_totals *out);
/* Returns the private bytes of a QP in the registry. */
size_t eng_control_qp_size(void);
int eng_control_qps(struct eng_control *c, struct eng_qp_view *out, int max);
int eng_control_neighbors(
	struct eng_control *c, unsigned transport, struct net_neighbor_view *out, int max);

/* A client, for the prompt and telemetry. */
struct eng_client_view {
	uint32_t client;
	char name[SHM_NAME_MAX];
	bool flat, leaving;
	uint32_t qps, cqs, mrs, mws, pds, srqs, listeners, requests, regions, events;
	uint64_t heap_used, heap_size; /* bytes of its home region */
};
/* As eng_qps(): from a thread other than the loops'. */
int eng_control_clients(struct eng_control *c, struct eng_client_view *out, int max);

/* As eng_socket_start() and eng_socket_stop(). */
int eng_control_socket_start(struct eng_control *c, const char *path, char *err, size_t errlen);
void eng_control_socket_stop(struct eng_control *c);

#endif
