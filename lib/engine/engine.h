/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: stages on lcores between DPDK ports and clients. The one place where records meet
 * mbufs. An instance holds no globals: a process may run several (the benchmark harness runs two).
 */
#ifndef SAKER_ENGINE_H
#define SAKER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/addr.h"
#include "../falcon/falcon.h"
#include "../falcon/rue.h"
#include "../net/net.h"
#include "../shm/shm.h"
#include "../tcp/tcp.h"

#define ENG_MAX_PORTS      16
#define ENG_MAX_IFS        64
#define ENG_MAX_LCORES     16
#define ENG_MAX_TRANSPORTS 8
#define ENG_MAX_STAGES     SHM_MAX_STAGES
#define ENG_MAX_ROUTES     64

struct eng;
struct rte_mempool;

enum eng_idle { ENG_IDLE_POLL, ENG_IDLE_YIELD, ENG_IDLE_SLEEP };

struct eng_port_config {
	uint16_t port_id;                /* DPDK's */
	uint32_t mtu;                    /* IP packet bytes: 1280..65535 less the Ethernet header */
	bool offload_cksum, offload_tso; /* use them where the port offers them */
	uint16_t rxd, txd; /* descriptors of a queue; 0: 1024, or as near as the port comes */
	uint8_t mac[6];    /* to be used instead of the port's own; 0: the port's */
};

struct eng_if_config { /* an address on a port (and VLAN) */
	uint16_t port; /* index in ports[] */
	uint16_t vlan; /* ETH_NO_VLAN or id */
	struct sk_addr addr;
	unsigned prefix;
	bool shared; /* somebody else answers for it, as net_addr_share() has it: for tunnels only
		      */
};

struct eng_route_config {
	struct sk_addr dst, gateway;
	unsigned prefix;
};

struct eng_limits { /* pools and tables, sized at start */
	uint32_t clients, qps, cqs, mrs, mws, pds, srqs, listeners, conns; /* mws may be 0 */
	uint32_t rx_mbufs, tx_mbufs; /* per transport stage / engine stage */
	/* per client */
	uint32_t client_qps, client_cqs, client_mrs, client_mws, client_regions;
	uint64_t client_home_bytes; /* of its home region */
	uint64_t client_mem_bytes;  /* of memory it brings, or registers in sparse memory */
	uint32_t sq_depth, rq_depth, cq_depth;
	uint16_t ird, ord;
};

struct eng_falcon_config {
	bool enabled;
	struct fa_config stack; /* its seed is drawn anew */
	struct fa_swift_params swift;
	uint16_t psps;     /* bits 1 << enum psp_version: what may be agreed on, the strongest that
			      the peer has, too; with keys only under TLS: */
	uint8_t psk[64];   /* pre-shared key of the exchange, 16 bytes or more; */
	unsigned psk_len;  /* 0: the exchange is in clear */
	uint8_t ordering;  /* enum rof_ordering, where a client does not say */
	uint8_t errors;    /* enum rof_errors */
	uint32_t mtu;      /* RDMA payload of a packet; less where a port's MTU is less */
	uint8_t flows;     /* 1 or 4 */
	uint8_t rnr_retry; /* how often our requests may be refused; 7: without end */
	uint8_t rnr_code;  /* how long a peer is asked to wait for a receive: 5 bits */
	uint16_t port;     /* TCP: of the exchange that is addressed by (GID, QPN) */
	uint64_t patience_ns; /* how long the peer of a QP moved by hand may be missed, at least */
	/* PSP tunnel mode (Falcon 7.1.2), as the peer must have it, too: the connection's addresses
	 * stand in an inner header, the outer one is from tunnel_source (unspecified: from the same
	 * address) to the peer's */
	bool tunnel;
	struct sk_addr tunnel_source;
	/* Each connection's packets to us carry a cookie of their own (9.2.1): the function, which
	 * is sealed elsewhere, and 40 random bits */
	bool pcid;
	uint32_t function;     /* 24 bits: Destination Function of packets to us (7.2) */
	uint64_t keepalive_ns; /* idle time after which a peer's host is asked; 0: as [tcp] */
	/* A peer gets another SPI and key after so long and so many packets, and all peers do when
	 * the device key changes; 0: never */
	uint64_t rekey_ns, rekey_packets, device_key_ns;
};

struct eng_config {
	char name[SHM_NAME_MAX];
	struct eng_port_config ports[ENG_MAX_PORTS];
	unsigned nports;
	struct eng_if_config ifs[ENG_MAX_IFS];
	unsigned nifs;
	struct eng_route_config routes[ENG_MAX_ROUTES];
	unsigned nroutes;
	/* lcores: loop k of the instance runs control (k == control_loop), transports whose
	 * transport_loop is k, engine stages whose stage_loop is k. */
	unsigned nloops;
	unsigned control_loop;
	unsigned ntransports, transport_loop[ENG_MAX_TRANSPORTS];
	unsigned nstages, stage_loop[ENG_MAX_STAGES];
	enum eng_idle idle;
	uint32_t sleep_after; /* turns without work before a loop of ENG_IDLE_SLEEP sleeps */
	struct eng_limits limits;
	struct tcp_config tcp;
	/* A responder that agreed on no ready-to-receive message holds its send queue for so long
	 * after its reply was sent, and until that is acknowledged; 0: until the initiator's first
	 * FPDU has come (RFC 5044 7.1.2). */
	uint64_t mpa_first_fpdu_ns;
	/* An initiator that has the reply lets this time pass before its QP starts. */
	uint64_t mpa_first_fpdu_delay_ns;
	uint8_t mpa_revision; /* 1 or 2 */
	bool mpa_crc, mpa_markers;
	bool mpa_fall_back; /* connect again at revision 1 where a peer does not know revision 2 */
	bool draft_ext;     /* connections speak draft-ietf-storm-rdmap-ext-00 */
	struct eng_falcon_config falcon;
	uint16_t port_min, port_max; /* local ports of active opens */
	bool huge_pages;             /* home regions on huge pages where there are some */
	int socket_id;
	/* Called in each turn of loop 0, before it receives: work that shares its lcore. Returns
	 * whether there was some. NULL: none. */
	bool (*hook)(void *arg, uint64_t now);
	/* Of a hook whose clients ring, where idle = ENG_IDLE_SLEEP; else NULL. Loop 0 goes to
	 * sleep, or has slept; and, with that said, whether there is something that `hook` may not
	 * see. */
	void (*hook_sleep)(void *arg, bool sleeps);
	bool (*hook_rung)(void *arg);
	void *hook_arg;
};

void eng_config_default(struct eng_config *cfg);
/* NULL with one sentence in `err` that names what was wrong. Configures and starts the ports. */
struct eng *eng_create(const struct eng_config *cfg, char *err, size_t errlen);
/* After all loops have returned. Stops the ports, frees everything. */
void eng_destroy(struct eng *e);

/* Serves clients on a Unix socket, from a control thread of its own. */
int eng_socket_start(struct eng *e, const char *path, char *err, size_t errlen);
void eng_socket_stop(struct eng *e);

/* Attaches a flat client whose home region is [base, base + size): zeroed memory that outlives it,
 * `mem_len` bytes of it for the client's own use. Any thread; the loops must be running (or be
 * polled by the caller from `idle` of saker_open_flat). Returns a client number or -errno. */
int eng_attach_flat(struct eng *e, const char *name, void *base, size_t size, size_t mem_len);
/* The client is gone: its objects are torn down, its peers are told. Returns at once;
 * eng_client_gone() tells when nothing is left. */
int eng_detach(struct eng *e, int client);
bool eng_client_gone(struct eng *e, int client);
/* Guards memory that somebody else can take away (a file that is truncated), such as a flat
 * client's: an access then meets zero pages, and *flag becomes true (atomic). `base` begins a page
 * of the mapping's size. A number or -errno. */
int eng_guard(void *base, size_t len, bool *flag);
/* Nobody accesses it any more. */
void eng_unguard(int guard);

/* One turn of loop k: receive, transports, stages, control, send. `now` in ns: eng_clock(). Returns
 * whether there was work. */
bool eng_poll(struct eng *e, unsigned loop, uint64_t now);
/* Runs loop k with the idle policy until eng_stop(). */
int eng_run(struct eng *e, unsigned loop);
void eng_stop(struct eng *e);
/* Looks at the ports' links, and says which came and went. For a thread beside the loops, about
 * once a second. A link that is down drops what its queue does not take. */
void eng_ports_look(struct eng *e);
/* After all loops have returned: they may be run again. */
void eng_restart(struct eng *e);
/* Of an instance whose only loop another's turns by eng_poll(), and from its thread: that one goes
 * to sleep, so that clients' doorbells need a wake-up, or has slept; and whether one has rung that
 * the last turn may not have seen. */
void eng_sleeps(struct eng *e, bool sleeps);
bool eng_rung(struct eng *e);
/* Loop 0, where it sleeps, wakes once when `fd` is readable; each call makes it once more. Any
 * thread. 0 or -errno. */
int eng_wake_on(struct eng *e, int fd);
/* Not any more. */
void eng_wake_off(struct eng *e, int fd);
/* Nanoseconds since some start: the TSC, scaled. */
uint64_t eng_clock(void);

/* ---- Mbufs (for drivers whose frames an instance may be given) ---- */

/* Returns a pool of `count` mbufs with the private area that all instances of the process have, and
 * `room` data bytes behind the headroom; or NULL when there is no memory, or `room` is more than an
 * mbuf can hold. Its name is made of `kind` and the two numbers. */
struct rte_mempool *eng_pool_create(const char *kind, unsigned instance, unsigned index,
	uint32_t count, uint32_t room, int socket);
/* Frees the pool once its last mbuf has come home: another instance, or a port, may still hold
 * some. NULL is allowed. */
void eng_pool_free(struct rte_mempool *mp);
/* Frees the pools whose last mbuf has come home since; returns how many still wait for theirs. */
unsigned eng_pools_waiting(void);

/* ---- Looking in (any thread; counters are read relaxed) ---- */

/* Calls `each` for every counter of every layer: "tcp", "rto", severity, help, value. */
void eng_counters(const struct eng *e,
	void (*each)(void *arg, const char *layer, const char *name, enum sk_severity sev,
		const char *help, uint64_t value),
	void *arg);
struct eng_totals {
	uint32_t clients, qps, cqs, mrs, mws, pds, srqs, listeners, conns, regions;
	uint32_t rx_mbufs_free, rx_mbufs, tx_mbufs_free, tx_mbufs;
	uint64_t msgs_in, msgs_out, bytes_in, bytes_out;
	size_t private_bytes_per_qp; /* engine-private bytes of an idle connected QP with 16-deep
					queues */
	size_t shared_bytes_per_qp;
};
void eng_totals(const struct eng *e, struct eng_totals *out);
struct eng_qp_view {
	uint32_t qpn, client, stage, transport;
	const char *state;
	struct tcp_tuple tuple;
	bool connected;
	struct tcp_info tcp;
	uint64_t msgs_out, msgs_in, bytes_out, bytes_in;
};
/* Asks the owner stages; for the prompt and telemetry, not from a loop's own thread unless the
 * loops are polled elsewhere. Returns how many. */
int eng_qps(struct eng *e, struct eng_qp_view *out, int max);
/* The same for the neighbours of a transport stage, each of which has its own table (all learn from
 * what comes). */
int eng_neighbors(struct eng *e, unsigned transport, struct net_neighbor_view *out, int max);
struct eng_loop_stats {
	uint64_t turns, busy_turns, busy_cycles, total_cycles, sleeps;
	uint64_t wakes; /* of the sleeps: not over by themselves */
};
void eng_loop_stats(const struct eng *e, unsigned loop, struct eng_loop_stats *out);
/* Telemetry commands /saker/...: in a process with several instances for the first only. */
int eng_telemetry_register(struct eng *e);

#define ENG_REASONS(X)                                                                             \
	X(ENG_RX_BAD, SK_NOTICE, "a received frame was dropped (the parser's counter tells why)")  \
	X(ENG_RX_OFFLOAD_BAD, SK_WARNING, "the port found a checksum wrong")                       \
	X(ENG_RX_CKSUM, SK_NORMAL, "the port vouched for a segment's checksum")                    \
	X(ENG_TX_FULL, SK_NORMAL, "the port's send queue was full")                                \
	X(ENG_TX_LINK_DOWN, SK_NORMAL, "a frame was dropped, since the port has no link")          \
	X(ENG_TX_REFUSED, SK_WARNING, "a frame that the port cannot prepare was dropped")          \
	X(ENG_TX_CKSUM, SK_NORMAL, "a frame went out for the port to fill in checksums")           \
	X(ENG_TX_TSO, SK_NORMAL, "a frame went out for the port to cut into segments")             \
	X(ENG_TX_NO_MBUF, SK_WARNING, "no mbuf to send with")                                      \
	X(ENG_RX_NO_MBUF, SK_WARNING, "no mbuf to receive into")                                   \
	X(ENG_RING_FULL, SK_NORMAL,                                                                \
		"a ring between two stages was full; the sender kept its work")                    \
	X(ENG_STALE, SK_NORMAL, "a message for a QP or connection that had gone")                  \
	X(ENG_BAD_DOORBELL, SK_WARNING, "a client rang for a QP that is not its own")              \
	X(ENG_BAD_QUEUE, SK_WARNING, "a client's queue made no sense")                             \
	X(ENG_BAD_COMMAND, SK_WARNING, "a client's command was refused")                           \
	X(ENG_CQ_OVERFLOW, SK_WARNING, "a completion queue was full: its QP went to error")        \
	X(ENG_CLIENT_SIGBUS, SK_WARNING, "a client took away memory that it had brought")          \
	X(ENG_CLIENT_DEAD, SK_NOTICE, "a client died or was put out")                              \
	X(ENG_QUOTA, SK_NOTICE, "a client's quota refused a command")                              \
	X(ENG_HANDOFF, SK_NORMAL, "a frame was given to another transport stage than received it") \
	X(ENG_HANDOFF_FULL, SK_WARNING, "a frame was dropped: too many for another stage wait")    \
	X(ENG_LOOP_PORT, SK_NORMAL, "a frame went over the internal loop port")                    \
	X(ENG_CM_STATE, SK_FATAL, "an event that the state of a connection does not know")         \
	X(ENG_FALCON_NO_CONN, SK_NOTICE, "a Falcon packet for no connection")                      \
	X(ENG_FALCON_INNER, SK_WARNING,                                                            \
		"a Falcon packet whose inner IP header is not its connection's (tunnel mode)")     \
	X(ENG_FALCON_SPI_TOLD, SK_WARNING,                                                         \
		"the connection manager was told of wrong SPIs (Falcon 9.2.2.3)")                  \
	X(ENG_FALCON_REKEYED, SK_NORMAL, "a live Falcon connection's peer took another SPI")       \
	X(ENG_FALCON_DEVICE_KEY, SK_NORMAL, "a device key was changed (Falcon 9.2.2.3)")           \
	X(ENG_FALL_BACK, SK_NOTICE, "a connection was tried again at MPA revision 1")              \
	X(ENG_REQUEST_REFUSED, SK_NOTICE, "a connect request that found no listener or no room")   \
	X(ENG_REQUEST_TIMEOUT, SK_NOTICE, "a connect request that its listener did not answer")

SK_REASONS_DECLARE(eng, ENG_NONE, ENG_REASONS)

#endif
