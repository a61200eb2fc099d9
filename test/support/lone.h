/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One side of an exchange that is alone on its carrier: bytes in, bytes out. Its functions are
 * those of exchange.h, with the carrier of the side behind them. The failure of the carrier is
 * that of the exchange.
 */
#ifndef TEST_SUPPORT_LONE_H
#define TEST_SUPPORT_LONE_H

#include "../../lib/rof/exchange.h"

/* The names of the exchange at both sides. */
#define LONE_INITIATOR 0x01c1d001
#define LONE_RESPONDER 0x02c1d002
/* The ports in each CONNECT with ROFX_LISTENER. */
#define LONE_SERVICE 7000
#define LONE_PORT    50000

struct lone;

struct lone *lone_connect(const struct rofx_config *cfg, uint64_t now, const struct rofx_side *ours,
	const void *private_data, size_t len, int *err);
/* The same with a name and a service of the caller. */
struct lone *lone_connect_as(const struct rofx_config *cfg, uint64_t now, uint32_t name,
	uint16_t service, const struct rofx_side *ours, const void *private_data, size_t len,
	int *err);
struct lone *lone_lookup(
	const struct rofx_config *cfg, uint64_t now, const struct rofx_question *q, int *err);
struct lone *lone_listen(const struct rofx_config *cfg, uint64_t now);
void lone_destroy(struct lone *x);
int lone_input(struct lone *x, uint64_t now, const uint8_t *data, size_t len);
size_t lone_output(struct lone *x, uint8_t *buf, size_t room);
bool lone_handshakes(const struct lone *x);
/* Reports the end of the carrier. */
void lone_lost(struct lone *x);
/* Reports the end of the carrier; `x` continues on a new one, which `initiator` opens. */
void lone_renew(struct lone *x, const struct rofx_config *cfg, uint64_t now, bool initiator);
uint64_t lone_deadline(const struct lone *x);
void lone_timeout(struct lone *x, uint64_t now);
enum rofx_event lone_event(struct lone *x);
enum rofx_reason lone_why(const struct lone *x);
uint8_t lone_peer_version(const struct lone *x);
/* Returns whether the bytes are in a buffer for frames. */
bool lone_holds(const struct lone *x, const void *bytes, size_t len);
/* Frames for an exchange that does not exist. */
unsigned lone_strays(const struct lone *x);
const struct rofx_request *lone_request(const struct lone *x);
const struct rofx_question *lone_question(const struct lone *x);
const struct rofx_answer *lone_answer(const struct lone *x);
/* Returns the agreed parameters, with the keys that are in use; also after lone_trim(). */
const struct rofx_agreed *lone_agreed(struct lone *x);
void lone_list_ports(struct lone *x, const uint16_t ports[ROFX_PORTS]);
int lone_accept(struct lone *x, uint64_t now, const struct rofx_side *ours,
	const void *private_data, size_t len);
int lone_reject(struct lone *x, enum rofx_reason why, const void *private_data, size_t len);
int lone_later(struct lone *x, uint64_t now, uint32_t delay_ms);
int lone_found(struct lone *x, uint32_t qpn, uint32_t qkey, const void *private_data, size_t len);
int lone_ready(struct lone *x);
int lone_rekey(struct lone *x, uint64_t now, const struct rofx_sa *sa);
int lone_rekeyed(struct lone *x);
int lone_finish(struct lone *x, uint64_t now);
bool lone_finished(const struct lone *x);
int lone_give_up(struct lone *x, enum rofx_reason why);
void lone_trim(struct lone *x);

#endif
