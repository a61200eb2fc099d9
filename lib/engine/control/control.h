/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control stage: one loop polls it, and it never blocks. It executes the commands that clients
 * put into their mailboxes, owns the registry of the clients' objects, and manages connections by
 * commands to the transport stages and the engine stages. This file is also the protocol between
 * the control stage and the other stages; common/msg.h lists the messages and their arguments.
 *
 * Two rings of struct eng_ctl * connect the control stage with each other stage. Each ring has a
 * single producer, a single consumer and ENG_CTL_RING entries. For an engine stage, they are:
 *
 *  - to_stage[i]: commands (types below ENG_CTL_NOTICE), whose memory belongs to the control stage;
 *    and notices (types from ENG_CTL_NOTICE on) that return to the stage, which then uses their
 *    memory again.
 *  - from_stage[i]: answered commands, in which the stage has filled in `status` and the results of
 *    the type; and notices of the stage.
 *
 * to_transport[i] and from_transport[i] are the same for a transport stage. No ring can become
 * full: at most ENG_CTL_COMMANDS commands at one stage are unanswered, and at most ENG_CTL_NOTICES
 * notices of one stage have not returned to it. A stage without a free notice marks the QP, the
 * connection or the client as pending, and sends the notice when another one has returned.
 *
 * Order:
 *
 *  - A stage handles the messages of one ring in order. It answers each command exactly once. The
 *    answer to ENG_CE_QP_DEL and ENG_CE_QP_RESET may come after the answers to later commands.
 *  - The fields that a type does not name in common/msg.h have no meaning.
 *
 * Listeners, commands to transport stages:
 *
 *  - ENG_CT_LISTEN carries `listen`: the number that the control stage has given to the listener,
 *    the local address (unspecified: every address), the TCP port, the backlog (connections), and
 *    the offer. Each transport stage receives it. Answers: 0 or -ENOMEM.
 *  - ENG_CT_UNLISTEN carries listen.number. Answers: 0, or -ENOENT when there is no such listener.
 *
 * Active connections, commands to a transport stage:
 *
 *  - ENG_CT_CONNECT carries connect.tuple (the remote address and port; laddr unspecified: the
 *    route decides; lport 0: the transport stage chooses), connect.offer and the private data. The
 *    answer carries `conn`. With a status below 0 there is no connection, and no notice follows;
 *    -EXDEV means that the connection belongs to transport stage `transport`. Each notice about the
 *    connection carries the `cookie` of the command.
 *  - ENG_CT_LOOKUP is ENG_CT_CONNECT for a datagram QP: it requests the QP number and the Q_Key of
 *    the datagram service connect.service at the remote address. ENG_TC_FOUND, ENG_TC_REJECTED or
 *    ENG_TC_FAILED carries the result.
 *  - ENG_CT_BIND carries `stage` and `qp_index`: from here on, the engine stage's QP uses the
 *    connection.
 *
 * Passive connections:
 *
 *  - The notices ENG_TC_REQUEST (`peer`: a peer requests a connection) and ENG_TC_LOOKUP (`lookup`:
 *    a peer requests a datagram service) carry `conn`. The control stage answers by one of the
 *    following commands with the same `conn`. When the connection has ended meanwhile, the status
 *    of ENG_CT_SELF, ENG_CT_FOUND and ENG_CT_REJECT is -ENOENT.
 *  - ENG_CT_ACCEPT, the answer to ENG_TC_REQUEST, carries `stage`, `qp_index`, connect.offer and
 *    the private data. An MPA reply has the revision of its request, whatever the offer contains.
 *    `cookie` has the same meaning as in ENG_CT_CONNECT. ENG_TC_ESTABLISHED with that cookie
 *    follows when the reply has been sent and the start-up is complete.
 *  - ENG_CT_SELF answers an ENG_TC_REQUEST that a self-connected QP has sent to itself. The
 *    accepted end of that connection belongs to no QP.
 *  - ENG_CT_FOUND, the answer to ENG_TC_LOOKUP, carries lookup.qpn, lookup.qkey and private data.
 *  - ENG_CT_REJECT answers both. It carries `reject` and private data.
 *
 * Notices of a transport stage:
 *
 *  - `from` and `transport` are the index of the stage.
 *  - ENG_TC_REQUEST, ENG_TC_ESTABLISHED and ENG_TC_REJECTED carry `peer`: the tuple, the outcome of
 *    the negotiation, the EMSS and the send space. The control stage derives from them the other
 *    parameters of the QP (struct eng_start). If the EMSS changes before ENG_CT_BIND or
 *    ENG_CT_ACCEPT, the transport stage sends ENG_E_EMSS to the engine stage.
 *  - ENG_TC_REJECTED, ENG_TC_FAILED and ENG_TC_FOUND make `conn` invalid. ENG_TC_FAILED also ends a
 *    request that the control stage has not answered yet; its `cookie` is then 0. The stage uses
 *    the index again only after the notice has returned, so a command that crosses the notice
 *    reaches the dead connection and never another one.
 *  - ENG_TC_FAILED with connect.offer.retry: the peer has closed the connection instead of
 *    answering an enhanced request, and the offer of ENG_CT_CONNECT allowed a second attempt.
 *    `connect` and the private data are those of the attempt that should follow (RFC 6581 10).
 *
 * The start and the end of a connection:
 *
 *  - The engine stage answers ENG_CE_QP_START when it is ready for ENG_E_* messages. The control
 *    stage sends ENG_CT_BIND or ENG_CT_ACCEPT only after that answer.
 *  - If ENG_CT_BIND or ENG_CT_ACCEPT meets a dead connection, the transport stage sends
 *    ENG_E_CLOSED to the engine stage and waits for its ENG_T_RELEASE. Therefore a bound connection
 *    always ends by ENG_E_CLOSED, and the control stage then receives ENG_EC_DISCONNECTED.
 *  - ENG_CT_ABORT ends a connection before it is bound: no notice about `conn` follows its answer.
 *    A peer that has accepted receives a Terminate message, any other peer a TCP reset. The status
 *    is -ENOENT for a dead connection. With abort.how ENG_ABORT_UNANSWERED, a connection that the
 *    peer has accepted continues, and the status is -EBUSY.
 *
 * Commands to an engine stage:
 *
 *  - Before ENG_CE_CLIENT_ADD, the control stage fills in these members of eng_client.stage[i]:
 *    doorbell, event, qps, nqps and client. Before the first datagram QP or address handle of the
 *    client on the stage, it fills in ahs and nahs. Before ENG_CE_QP_ADD it fills in sq, rq,
 *    shared and rd (state RD_QP_INIT) of the QP. It adds CQs, SRQs and address handles complete.
 *  - After an ENG_CE_QP_ADD that failed, the stage answers further commands about the QP, which the
 *    control stage may have sent already, with -ENOTCONN.
 *  - ENG_CE_QP_CLOSE carries close.how. ENG_CLOSE_ORDERLY disconnects the QP after the posted work
 *    requests. ENG_CLOSE_ABORT moves the QP, connected or not, to the error state and flushes it.
 *    ENG_CLOSE_UNBOUND follows an ENG_CT_BIND or ENG_CT_ACCEPT that was answered with a status
 *    below 0: no ENG_E_CLOSED will come, and the stage sends ENG_EC_DISCONNECTED at once.
 *  - ENG_CE_QP_DEL and ENG_CE_QP_RESET abort and release the connection of a connected QP first. No
 *    ENG_EC_* notice about the QP follows the answer. None of the three waits for the peer
 *    (ENG_T_ABORT, ENG_T_LEAVE).
 *  - ENG_CE_QP_QUERY is answered with `qp_info`: enum rd_qp_state, and the QP's counters.
 *
 * Notices of an engine stage:
 *
 *  - `from` and `stage` are the index of the stage. All carry `client` (NULL: no client owns the
 *    QP), and those about an object `qp` or object.object as common/msg.h states.
 *  - ENG_EC_DISCONNECTED carries a status of 0 (an orderly end) or -errno.
 */
#ifndef SAKER_ENGINE_CONTROL_H
#define SAKER_ENGINE_CONTROL_H

#include "../common/instance.h"

struct rte_ring;
struct rte_rcu_qsbr;

/* Returns a control stage, which the caller destroys, or NULL with one sentence in `err`. */
struct eng_control *eng_control_create(
	const struct eng_control_args *args, char *err, size_t errlen);
/* Frees the control stage and every object, and sends no message. All loops must have ended. */
void eng_control_destroy(struct eng_control *c);

/* Runs one turn at the time `now` (ns). Returns whether there was work. */
bool eng_control_poll(struct eng_control *c, uint64_t now);
/* Returns the time (ns) at which the next turn is needed even if no message arrives. */
uint64_t eng_control_deadline(const struct eng_control *c);
/* Returns the control stage's counters, an array of eng_reason_count elements. */
const uint64_t *eng_control_counters(const struct eng_control *c);

/* Do the work of eng_attach_woken(), eng_detach(), eng_client_gone(), eng_totals() (only the counts
 * of objects), eng_qps(), eng_clients() and eng_neighbors(), which engine.h describes. */
int eng_control_attach_flat(struct eng_control *c, const char *name, void *base, size_t size,
	size_t mem_len, int wake_fd);
int eng_control_detach(struct eng_control *c, int client);
bool eng_control_client_gone(struct eng_control *c, int client);
void eng_control_totals(const struct eng_control *c, struct eng_totals *out);
/* Returns the bytes of private memory that the registry takes for one QP. */
size_t eng_control_qp_size(void);
int eng_control_qps(struct eng_control *c, struct eng_qp_view *out, int max);
int eng_control_clients(struct eng_control *c, struct eng_client_view *out, int max);
int eng_control_neighbors(
	struct eng_control *c, unsigned transport, struct net_neighbor_view *out, int max);

/* Do the work of eng_events() and eng_failed(). */
int eng_control_events(struct eng_control *c, uint32_t qpn, struct eng_flight *out);
int eng_control_failed(struct eng_control *c, unsigned transport, struct eng_flight *out, int max);
/* Does the work of eng_change(), after eng_config_check(). */
int eng_control_change(struct eng_control *c, const struct eng_config *next,
	struct eng_changed *out, char *err, size_t errlen);

/* Do the work of eng_socket_start() and eng_socket_stop(), which engine.h describes. */
int eng_control_socket_start(struct eng_control *c, const char *path, char *err, size_t errlen);
void eng_control_socket_stop(struct eng_control *c);

#endif
