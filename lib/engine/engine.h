/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The public interface of the engine. The engine connects DPDK ports with clients: it receives and
 * sends mbufs, runs iWARP and RDMA over Falcon, and serves the queues that clients have in shared
 * memory. One engine is an instance (struct eng): a set of stages that loops poll on lcores. An
 * instance has no global variables, so a process may run several; the gateway runs one for each
 * machine. All times are in nanoseconds, all sizes in bytes, and all numbers in host byte order.
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
#include "../rdma/latency.h"
#include "../shm/shm_msg.h"
#include "../tcp/tcp.h"

#define ENG_MAX_PORTS      16
#define ENG_MAX_IFS        64
#define ENG_MAX_LCORES     32
#define ENG_MAX_TRANSPORTS 64
#define ENG_MAX_STAGES     64
#define ENG_MAX_ROUTES     64

struct eng;
struct rofx_tls;
struct rte_mempool;

/* The idle policy: what a loop does when its turns find no work. */
enum eng_idle { ENG_IDLE_POLL, ENG_IDLE_YIELD, ENG_IDLE_SLEEP };

struct eng_port_config {
	uint16_t port_id; /* port number of DPDK */
	uint32_t mtu;     /* bytes of an IP packet: 1280 to 65535 less the Ethernet header */
	bool offload_cksum, offload_tso; /* use these offloads if the port has them */
	/* ENG_IDLE_SLEEP: let the port's receive interrupts wake the loops, if it has them */
	bool interrupts;
	/* Descriptors per queue. 0: 1024, or the nearest number that the port supports. */
	uint16_t rxd, txd;
	uint8_t mac[6]; /* MAC address that replaces the port's own; all 0: the port's own */
};

/* One address of an interface. An interface is a port, or a VLAN on a port. */
struct eng_if_config {
	uint16_t port; /* index in eng_config.ports */
	uint16_t vlan; /* VLAN ID, or ETH_NO_VLAN */
	struct sk_addr addr;
	unsigned prefix; /* length in bits */
	/* Another station answers ARP and neighbour discovery for this address, as defined at
	 * net_addr_share(). Such an address serves only as a tunnel source. */
	bool shared;
};

struct eng_route_config {
	struct sk_addr dst, gateway;
	unsigned prefix; /* length of `dst` in bits */
};

/* Sizes of pools and tables. eng_create() allocates all of them. */
struct eng_limits {
	/* Objects of all clients together; `mws` may be 0. */
	uint32_t clients, qps, cqs, mrs, mws, pds, srqs, listeners, conns;
	/* mbufs of each transport stage, and of each engine stage */
	uint32_t rx_mbufs, tx_mbufs;
	/* objects of one client */
	uint32_t client_qps, client_cqs, client_mrs, client_mws, client_regions;
	/* The shares of each pool: users (user IDs, or machines) that have a minimum; the minimum,
	 * and the most that one user may hold, in percent of the pool. A most of 0: all of it. */
	uint32_t users, user_min, user_most;
	uint64_t client_home_bytes; /* home region of a client that attaches through the socket */
	/* largest sum of the regions of one client, and of its registrations in sparse regions */
	uint64_t client_mem_bytes;
	uint32_t sq_depth, rq_depth, cq_depth; /* most entries of one queue */
	uint16_t ird, ord; /* most outstanding Reads and Atomics of a QP, in and out */
};

/* The share of the engine that a client, or a user, gets when others have work, and the most that
 * it gets. An engine stage enforces both for what it sends; the limits are divided by the number of
 * engine stages. */
struct eng_rates {
	/* 1 to ENG_WEIGHT_MAX; 0 stands for ENG_WEIGHT. Clients of a user that have work are served
	 * in proportion to their weights, and so are users. */
	uint32_t weight;
	uint64_t bits;     /* most bits per second, in the records or payloads sent; 0: no limit */
	uint64_t messages; /* most work requests of send queues per second; 0: no limit */
};
#define ENG_WEIGHT     10
#define ENG_WEIGHT_MAX 100
#define ENG_MAX_RATES  64

/* A row of the table of rates: the clients that it applies to, and their rates. */
struct eng_rates_config {
	bool present;
	/* Name of the clients. Each of them has these rates. Empty: `uid` applies. */
	char name[SHM_NAME_MAX];
	/* User ID of the clients that attach through the socket. All of them together have these
	 * rates. ENG_NO_UID: none. */
	uint32_t uid;
	struct eng_rates rates;
	/* The class of packets of their QPs, listeners and address handles for which the program
	 * chooses none: the DSCP in the upper six bits, and 0 to 7. */
	uint8_t traffic_class, priority;
};
#define ENG_NO_UID     UINT32_MAX
#define ENG_PRIORITIES 8

/* The modes of Falcon connections with some peers, or at some ports. */
struct eng_modes_config {
	bool present;
	struct sk_addr addr; /* the peers that begin with `prefix` bits of it, 0 to 128 */
	unsigned prefix;
	uint16_t port; /* the listener's, at either end; 0: every port */
	/* 0 stands for the values of struct eng_falcon_config. Neither of the modes may be ..._ANY.
	 */
	struct shm_modes modes;
};

#define ENG_MAX_MODES 64

struct eng_falcon_config {
	bool enabled;
	/* eng_create() replaces a max_conns of 0 by limits.conns, and each transport stage the
	 * seed by a random one. */
	struct fa_config stack;
	const char *cc; /* name of the congestion control, for fa_algorithm_find() */
	/* The parameters of all congestion controls. eng_create() derives swift.flow_a and
	 * swift.flow_b. */
	struct fa_rue_params rue;
	/* Supported protection of packets: bits ROFX_PSP(enum psp_version). Two peers agree on the
	 * strongest version that both support. Versions with keys require `tls`. */
	uint16_t psps;
	/* Keys and certificates of the exchange's TLS; NULL: the exchange is in clear text. It
	 * outlives the instance; several instances may share it, and rofx_tls_load() may replace
	 * its contents at any time. */
	struct rofx_tls *tls;
	/* Every connection has a PSP version with keys: no such version is offered or accepted
	 * that has none, and no exchange in clear text. */
	bool require_psp;
	/* Every received packet takes the general path, not the faster one for packets with the
	 * expected headers. Both have the same results: this is for tests. */
	bool general_rx;
	uint8_t ordering; /* enum rof_ordering of a QP whose client leaves it open */
	uint8_t errors;   /* enum rof_errors */
	/* enum rof_ordering of a datagram QP and of an address handle whose client leaves it open
	 */
	uint8_t datagram_ordering;
	uint8_t datagram_errors; /* enum rof_errors of a datagram QP */
	uint32_t mtu;            /* RDMA payload bytes of a packet; reduced to fit a port's MTU */
	uint8_t flows;           /* flows of a connection: 1 or FA_FLOWS_MAX */
	/* Of two rows that a connection matches, the first one applies. */
	struct eng_modes_config modes[ENG_MAX_MODES];
	/* retries of a request when the peer has no receive posted; 7: no limit */
	uint8_t rnr_retry;
	/* 5-bit code of the RNR timeout that a peer receives when no receive is posted here */
	uint8_t rnr_code;
	/* TCP port of the exchange for QPs that are addressed by (GID, QPN), and for datagrams */
	uint16_t port;
	/* Least time for which the peer of a QP modified by the program may be absent while the QP
	 * has work. The QP's own timeout and retry count apply if they are longer. */
	uint64_t patience_ns;
	/* PSP tunnel mode (Falcon 7.1.2), which both peers must configure. The inner IP header has
	 * the addresses of the connection. The outer one has the tunnel source of each side; an
	 * unspecified `tunnel_source` stands for the connection's own address. */
	bool tunnel;
	struct sk_addr tunnel_source;
	/* Packets to this side carry a cookie that is unique to their connection (PCID, 9.2.1): the
	 * Destination Function and 40 random bits. The function in the Falcon header may be
	 * encrypted; the cookie never is. */
	bool pcid;
	uint32_t function; /* 24 bits: Destination Function of packets to this side (7.2) */
	/* A host with connections that is silent for 2.2 times this, on its carrier and on all
	 * connections, has gone. 0: the values of eng_config.tcp apply to carriers, and no host is
	 * given up. */
	uint64_t keepalive_ns;
	/* Time without a frame after which a carrier to a host without connections is closed. */
	uint64_t control_idle_ns;
	/* Time and number of packets after which a peer gets a new SPI and key for what it sends,
	 * and the lifetime of the device key, whose change gives all peers new ones. 0: never. */
	uint64_t rekey_ns, rekey_packets, device_key_ns;
};

#define ENG_GROUP_MAX   64 /* of a group's name, with its 0 */
#define ENG_SOCKET_MODE 0660

struct eng_config {
	char name[SHM_NAME_MAX]; /* 0-terminated */
	/* Of the Unix socket: a group's name or number, or "" for the process's own; and the file's
	 * mode, 0600 to 0777. */
	char socket_group[ENG_GROUP_MAX];
	uint32_t socket_mode;
	struct eng_port_config ports[ENG_MAX_PORTS];
	unsigned nports;
	struct eng_if_config ifs[ENG_MAX_IFS];
	unsigned nifs;
	struct eng_route_config routes[ENG_MAX_ROUTES];
	unsigned nroutes;
	/* The map of stages onto loops. Loop k polls the control stage if control_loop is k, each
	 * transport stage t whose transport_loop[t] is k, and each engine stage s whose
	 * stage_loop[s] is k. */
	unsigned nloops;
	unsigned control_loop;
	unsigned ntransports, transport_loop[ENG_MAX_TRANSPORTS];
	unsigned nstages, stage_loop[ENG_MAX_STAGES];
	enum eng_idle idle;
	uint32_t sleep_after; /* ENG_IDLE_SLEEP: turns without work before a loop sleeps */
	struct eng_limits limits;
	/* Of two rows with the same name or user ID, the first one applies. */
	struct eng_rates_config rates[ENG_MAX_RATES];
	/* The priority code point, 0 to 7, of the VLAN tags of packets with each priority. */
	uint8_t vlan_pcp[ENG_PRIORITIES];
	/* The limits of the instance, and its share of a turn beside other instances that the same
	 * loop polls. A weight of 0: a turn is not limited by the turns before it. */
	struct eng_rates all_rates;
	/* limits.conns replaces max_conns; ooo_slices_total is at most a quarter of the receive
	 * mbufs */
	struct tcp_config tcp;
	/* The time after its MPA reply for which a responder holds its send queue, if no
	 * ready-to-receive message was agreed on; it holds longer while the reply is not
	 * acknowledged. 0: until the initiator's first FPDU arrives (RFC 5044 7.1.2). */
	uint64_t mpa_first_fpdu_ns;
	/* The time between the arrival of the MPA reply and the start of the initiator's QP. */
	uint64_t mpa_first_fpdu_delay_ns;
	uint8_t mpa_revision; /* 1 or 2 */
	bool mpa_crc, mpa_markers;
	/* connect again at revision 1 if the peer does not support revision 2 */
	bool mpa_fall_back;
	/* connections use draft-ietf-storm-rdmap-ext-00, unless their client chooses otherwise */
	bool draft_ext;
	/* Every received TCP segment takes the general path, also those that the faster one could
	 * take. Both have the same results: this is for tests. */
	bool general_tcp;
	/* Every request and every FPDU of an iWARP QP takes the general path. Both have the same
	 * results: this is for tests, as is tcp.general. */
	bool general_iwarp;
	struct eng_falcon_config falcon;
	uint16_t port_min, port_max; /* range of local TCP ports of active opens */
	bool huge_pages;             /* place home regions on huge pages if there are any */
	int socket_id;               /* NUMA node of the pools, or SOCKET_ID_ANY */

	/* ---- For the gateway (all NULL in other programs) ---- */

	/* Work that shares the lcore of loop 0: called at the beginning of each of its turns.
	 * Returns whether there was work. */
	bool (*hook)(void *arg, uint64_t now);
	/* For ENG_IDLE_SLEEP: the instances that `hook` polls have doorbells, too. Loop 0 calls
	 * hook_sleep(true) before it sleeps and hook_sleep(false) afterwards. In between, it calls
	 * hook_rung(), which returns whether a client rang a doorbell that the last call of `hook`
	 * may have missed; the loop then does not sleep. */
	void (*hook_sleep)(void *arg, bool sleeps);
	bool (*hook_rung)(void *arg);
	void *hook_arg; /* argument of the three functions */
};

/* Fills in *cfg: the name, one loop, one stage of each kind, default limits and protocol
 * parameters, no port. */
void eng_config_default(struct eng_config *cfg);
/* Checks a configuration. Returns 0, or -EINVAL with a sentence in `err` when an instance cannot
 * work with it. */
int eng_config_check(const struct eng_config *cfg, char *err, size_t errlen);
/* Creates an instance from a copy of *cfg, and configures and starts its ports. Returns NULL, with
 * one sentence in `err` that names the wrong value, when the configuration is invalid, or a
 * resource or a port is not available. */
struct eng *eng_create(const struct eng_config *cfg, char *err, size_t errlen);
/* Stops the ports and frees the instance with all its objects. All loops must have returned. */
void eng_destroy(struct eng *e);

/* Serves clients on the Unix socket `path`, from a control thread of its own. Returns 0, or -errno
 * with one sentence in `err`. */
int eng_socket_start(struct eng *e, const char *path, char *err, size_t errlen);
/* Stops the control thread and removes the socket. */
void eng_socket_stop(struct eng *e);

/* Attaches a flat client with the name `name`. Its home region is [base, base + size): zeroed
 * memory of the caller that outlives the client, with `mem_len` bytes for the client's own use.
 * Flat clients of one name are one tenant. Callable from any thread. The loops must be running, or
 * the caller polls them in the `idle` function of saker_open_flat(). Returns the client's id, which
 * no later client gets, or -errno: -EUSERS when limits.clients leaves no place for this tenant,
 * -EDQUOT when the tenant has limits.user_most percent of the places, -ENOMEM, or the error of a
 * layout that does not fit `size`. */
int eng_attach_flat(struct eng *e, const char *name, void *base, size_t size, size_t mem_len);
/* The same for a client that sleeps: the engine then writes 8 bytes to the descriptor `wake_fd`,
 * which must never block. On success the engine has it, and closes it when the client has gone. -1:
 * none. */
int eng_attach_woken(
	struct eng *e, const char *name, void *base, size_t size, size_t mem_len, int wake_fd);
/* Detaches a client: the engine frees its objects and ends its connections. Returns immediately: 0,
 * -EINVAL when there is no such client, or -ENOMEM. The home region is in use until
 * eng_client_gone() returns true. Callable from any thread. */
int eng_detach(struct eng *e, int client);
/* Returns whether nothing is left of the client. Callable from any thread. */
bool eng_client_gone(struct eng *e, int client);
/* Guards the mapping [base, base + len) against SIGBUS: memory that another process can take away,
 * for example by truncating a file. The first access to a missing page replaces the whole mapping
 * by zero pages and sets *flag (atomic). `base` must be aligned to the page size of the mapping.
 * Returns the number of the guard, -ENOSPC when the table is full, or -errno. Any thread. */
int eng_guard(void *base, size_t len, bool *flag);
/* Removes a guard, once no thread accesses the mapping any more. A negative number is allowed. */
void eng_unguard(int guard);

/* Runs one turn of loop `loop`: calls the hook (loop 0), receives, polls its engine stages and (in
 * every 16th turn) its control stage, and sends. `now` is eng_clock(). Returns whether there was
 * work. */
bool eng_poll(struct eng *e, unsigned loop, uint64_t now);
/* Runs loop `loop` with the idle policy of the configuration until eng_stop(). Returns 0. */
int eng_run(struct eng *e, unsigned loop);
/* Makes all loops return after their current turn, and wakes those that sleep. Any thread. */
void eng_stop(struct eng *e);
/* The connections and listeners that a change has ended. */
struct eng_changed {
	uint32_t conns;     /* connections whose local address was removed */
	uint32_t listeners; /* listeners at such an address */
};
/* Changes an instance whose loops run: its addresses (`ifs`), routes, rates and classes of clients,
 * the modes of later Falcon connections (falcon.modes), and of `limits` the members client_*, which
 * apply to clients that attach later, except client_mem_bytes, which applies at once. `next` is a
 * complete configuration; its other members have no effect. A connection whose local address
 * disappears ends with EADDRNOTAVAIL, and its peer is notified. Returns 0, or -errno with one
 * sentence in `err`; then nothing has changed, except that after -ETIMEDOUT the change may still
 * follow. Not callable from the thread of a loop, unless another thread polls the loops. */
int eng_change(struct eng *e, const struct eng_config *next, struct eng_changed *out, char *err,
	size_t errlen);
/* Polls the link states of the ports, and logs each change. A thread beside the loops calls it
 * about once a second. Frames that the send queue of a port without a link does not accept are
 * dropped. Closes a device that was removed, when no stage uses it any more. */
void eng_ports_look(struct eng *e);
/* Takes the device of port `port` (an index in eng_config.ports) into use again, after it was
 * removed and has come back under the same name. It keeps the port's MAC address. Called by the
 * thread that calls eng_ports_look(). Returns 0, or -errno with a sentence in `err`. */
int eng_port_attach(struct eng *e, unsigned port, char *err, size_t errlen);
/* Permits eng_run() again after eng_stop(). All loops must have returned. */
void eng_restart(struct eng *e);
/* Returns the time in ns since an unspecified start, from the TSC. It is the same clock for all
 * instances and threads of the process. */
uint64_t eng_clock(void);

/* ---- For the gateway ---- */

/* An instance that another one polls from its hook, with eng_poll(), has a single loop and runs in
 * the thread of the other instance. eng_sleeps() shows its clients whether that thread sleeps, so
 * that a doorbell needs a wake-up, too. eng_rung() returns whether a client has rung a doorbell
 * that the last turn may have missed. Both are called only from that thread. */
void eng_sleeps(struct eng *e, bool sleeps);
bool eng_rung(struct eng *e);
/* Makes loop 0 wake from its sleep when `fd` becomes readable. This happens once; each further call
 * arms it once more. Callable from any thread. Returns 0, or -errno of epoll_ctl(2). */
int eng_wake_on(struct eng *e, int fd);
/* Withdraws eng_wake_on() for `fd`. */
void eng_wake_off(struct eng *e, int fd);

/* ---- Mbufs (for drivers whose frames an instance may receive) ---- */

/* Returns a pool of `count` mbufs on NUMA node `socket`. Each mbuf has the private area that all
 * instances of the process use, and `room` data bytes behind the headroom. The name of the pool
 * consists of `kind` and the two numbers. Returns NULL when memory is exhausted, or when `room` is
 * more than an mbuf can hold. The caller frees the pool with eng_pool_free(). */
struct rte_mempool *eng_pool_create(const char *kind, unsigned instance, unsigned index,
	uint32_t count, uint32_t room, int socket);
/* Frees the pool, or keeps it until all its mbufs have been freed: another instance or a port may
 * still hold some. NULL is allowed. */
void eng_pool_free(struct rte_mempool *mp);
/* Frees the pools of eng_pool_free() that are complete by now. Returns how many remain. */
unsigned eng_pools_waiting(void);

/* ---- Counters and views (any thread; the counters are read relaxed) ---- */

/* Calls `each` for every counter of every layer, with the layer ("tcp"), the name of the reason
 * ("TCP_NO_CONN"), its severity, its help line, and the sum over all stages. */
void eng_counters(const struct eng *e,
	void (*each)(void *arg, const char *layer, const char *name, enum sk_severity sev,
		const char *help, uint64_t value),
	void *arg);
/* One counter of one stage. A walk over all of them begins with {.reason = 1}: all stages of a
 * counter follow one another. */
struct eng_counter {
	const char *layer, *name, *help;
	char stage_name[24]; /* "control", "transport0", "engine0" */
	uint64_t value;
	unsigned list, reason, stage; /* the position of the walk */
};
/* Sets *c to the next counter. Returns false at the end. */
bool eng_counter_next(const struct eng *e, struct eng_counter *c);
/* The latencies of work requests, from the turn in which an engine stage took the request from its
 * queue to the one in which it completed the request without an error. One of RD_SAMPLE requests of
 * a QP counts. A walk over all stages and transports begins with a zeroed one. */
struct eng_latency {
	char stage_name[24];                    /* "engine0" */
	const char *transport;                  /* "iwarp", "falcon" */
	uint64_t sum;                           /* ns */
	uint64_t bucket[RD_LATENCY_BOUNDS + 1]; /* as in struct rd_latency */
	unsigned next;                          /* the position of the walk */
};
/* Sets *l to the next one. Returns false at the end. */
bool eng_latency_next(const struct eng *e, struct eng_latency *l);
/* The objects of an instance, and its traffic since its start. */
struct eng_totals {
	uint32_t clients, qps, cqs, mrs, mws, pds, srqs, listeners, conns, regions;
	uint32_t rx_mbufs_free, rx_mbufs, tx_mbufs_free, tx_mbufs;
	uint64_t msgs_in, msgs_out, bytes_in, bytes_out;
	/* memory of an idle connected iWARP QP: private to the engine, and shared with its client
	 * for two queues of 16 entries */
	size_t private_bytes_per_qp;
	size_t shared_bytes_per_qp;
};
/* Fills in the totals, without blocking. Each value is read for itself while the loops run, so that
 * the values need not belong to the same moment. The call visits each QP. */
void eng_totals(const struct eng *e, struct eng_totals *out);
/* The Falcon connection of a QP. */
struct eng_falcon_qp_view {
	bool open;           /* the other members are valid */
	uint8_t psp;         /* enum psp_version */
	uint32_t spi;        /* of received packets */
	uint64_t key_age_ns; /* of the key of received packets */
	bool tunnel;
	struct fa_info info;
};
/* The parameters of an iWARP connection, agreed on by both sides (RFC 5044, RFC 6581). */
struct eng_mpa_view {
	uint8_t revision; /* 1 or 2; 0: nothing yet */
	uint8_t rtr;      /* enum shm_rtr */
	bool crc;
	bool tx_markers, rx_markers; /* in what this side sends, and receives */
};
/* One QP. `transport`, `tuple`, `tcp`, `mpa`, `ird` and `ord` are valid while it is connected. */
struct eng_qp_view {
	uint32_t qpn, client, stage, transport; /* stage: of the engine stages */
	const char *state;
	struct tcp_tuple tuple;
	bool connected;
	uint8_t kind;        /* enum shm_transport */
	struct tcp_info tcp; /* Falcon: of the control channel */
	struct eng_falcon_qp_view falcon;
	/* Of its packets, while it is connected; a Falcon connection changes the flow label. */
	struct net_class class;
	struct eng_mpa_view mpa; /* iWARP */
	uint16_t ird, ord;       /* Reads that the peer, and this side, may have outstanding */
	uint64_t msgs_out, msgs_in, bytes_out, bytes_in;
};
/* Requests views of at most `max` QPs from the stages that own them, and waits up to 2 s for the
 * answers. Not callable from the thread of a loop, unless another thread polls the loops. Returns
 * the number of entries in `out`; 0 also when the stages did not answer or memory is exhausted. */
int eng_qps(struct eng *e, struct eng_qp_view *out, int max);
/* One client. */
struct eng_client_view {
	uint32_t client;
	char name[SHM_NAME_MAX];
	bool flat, leaving;
	uint32_t pid, uid; /* of its process; 0 if it is flat */
	uint32_t qps, cqs, mrs, mws, pds, srqs, listeners, requests, regions, events;
	uint64_t memory;               /* bytes that it shares with the engine */
	uint64_t heap_used, heap_size; /* bytes of its home region */
};
/* Requests views of at most `max` clients from the control stage, in the same way. */
int eng_clients(struct eng *e, struct eng_client_view *out, int max);
/* Requests the neighbour table of transport stage `transport`, in the same way. Each transport
 * stage has a table of its own, and all of them learn from the frames that arrive. */
int eng_neighbors(struct eng *e, unsigned transport, struct net_neighbor_view *out, int max);
/* An event of a connection, one of the counters of TCP or Falcon. Windows and bytes of Falcon are
 * those of its packets. */
struct eng_event {
	const char *name, *help;    /* of the counter */
	uint64_t age_ns;            /* before the look, or before the end of a failed connection */
	uint64_t srtt_ns, rto_ns;   /* at the event */
	uint32_t window, in_flight; /* TCP: bytes; Falcon: packets */
};
#define ENG_EVENTS 100 /* of one connection */
/* The last events of a connection, the oldest first. */
struct eng_flight {
	struct tcp_tuple tuple;
	int error;       /* errno; 0: it has not failed */
	uint64_t age_ns; /* since it failed */
	unsigned n;
	struct eng_event event[ENG_EVENTS];
};
/* Requests the last events of a QP's connection, in the same way as eng_qps(). Returns 1, or 0 when
 * there is no such connection or the stages did not answer. */
int eng_events(struct eng *e, uint32_t qpn, struct eng_flight *out);
/* Requests the events of at most `max` connections of transport stage `transport` that have failed
 * last, the newest first. Returns their number. */
int eng_failed(struct eng *e, unsigned transport, struct eng_flight *out, int max);
/* Falcon, summed over the transport stages. */
struct eng_falcon_view {
	uint32_t most, reserved; /* connections: the maximum, and those in use or being made */
	uint32_t open[16];       /* open ones, by enum psp_version */
	uint32_t starting; /* exchanges before their first request, which take no connection */
	uint32_t waiting;  /* exchanges that wait for their turn with TLS */
	uint64_t device_key_age_ns; /* of the oldest device key in use */
	uint64_t rekeyed;           /* changes of connections' keys so far */
};
/* Sums up the stages, without blocking. Each value is read for itself, so that the values need not
 * belong to the same moment. Zero when Falcon is not enabled. */
void eng_falcon_look(const struct eng *e, struct eng_falcon_view *out);
/* The properties of a port that are in use. */
struct eng_port_view {
	uint16_t rx_queues, tx_queues;
	bool interrupts;                     /* its receive interrupts wake the loops */
	bool ip_cksum, tcp_cksum, udp_cksum; /* the port computes these checksums */
	bool multi_seg;                      /* it sends frames of several segments */
	uint32_t tso;                        /* most TCP payload bytes of a TSO frame; 0: none */
	/* RTE_ETH_RSS_*: the packets that arrive at the queue of their transport stage; 0: none */
	uint64_t rss;
	uint16_t id;  /* DPDK's port number */
	bool removed; /* the device was removed; eng_port_attach() takes it back */
};
/* `port` is an index in eng_config.ports. */
void eng_port_look(const struct eng *e, unsigned port, struct eng_port_view *out);
struct eng_loop_stats {
	/* All turns, and those with work (busy); TSC cycles of both; how often the loop slept. */
	uint64_t turns, busy_turns, busy_cycles, total_cycles, sleeps;
	uint64_t wakes;      /* sleeps that an event ended before their time was over */
	uint64_t port_wakes; /* of those: by a receive interrupt of a port */
	/* Sleeps of 1 ms at most, because a port, a flat client or the hook cannot end them. */
	uint64_t naps;
};
void eng_loop_stats(const struct eng *e, unsigned loop, struct eng_loop_stats *out);
/* Registers the telemetry commands /saker/... with DPDK. In a process with several instances, the
 * commands report the first one that was registered. Returns 0 or -errno. */
int eng_telemetry_register(struct eng *e);

/* The reasons and counters of the layer "eng". */
#define ENG_REASONS(X)                                                                             \
	X(ENG_RX_BAD, SK_NOTICE,                                                                   \
		"a received frame was dropped (a counter of its layer has the reason)")            \
	X(ENG_RX_OFFLOAD_BAD, SK_WARNING, "a port reported a wrong checksum in a received frame")  \
	X(ENG_RX_CKSUM, SK_NORMAL, "a port had verified the checksum of a received frame")         \
	X(ENG_TX_FULL, SK_NORMAL, "the send queue of a port was full")                             \
	X(ENG_TX_LINK_DOWN, SK_NORMAL,                                                             \
		"a frame was dropped because its port has no link, or its device was removed")     \
	X(ENG_TX_COPIED, SK_NORMAL,                                                                \
		"a frame had more segments than its port sends, and was copied into one")          \
	X(ENG_PORT_GONE, SK_WARNING, "a connection ended because its port's device was removed")   \
	X(ENG_TX_REFUSED, SK_WARNING,                                                              \
		"a frame was dropped because rte_eth_tx_prepare() refused it")                     \
	X(ENG_TX_CKSUM, SK_NORMAL, "a frame was sent with checksum offload")                       \
	X(ENG_TX_TSO, SK_NORMAL, "a frame was sent with TSO")                                      \
	X(ENG_TX_NO_MBUF, SK_WARNING, "no mbuf was free for sending")                              \
	X(ENG_TX_SHARE, SK_NOTICE,                                                                 \
		"a QP waited because its user held all send records of its share")                 \
	X(ENG_RX_NO_MBUF, SK_WARNING, "no mbuf was free for a received frame")                     \
	X(ENG_RING_FULL, SK_NORMAL, "a ring between two stages was full; the sender tries again")  \
	X(ENG_STALE, SK_NORMAL, "a message named a QP or connection that no longer existed")       \
	X(ENG_BAD_DOORBELL, SK_WARNING,                                                            \
		"a client rang the doorbell of a QP that it does not have")                        \
	X(ENG_BAD_COMMAND, SK_WARNING, "a command of a client was refused")                        \
	X(ENG_CQ_OVERFLOW, SK_WARNING,                                                             \
		"a completion queue was full; the QP went to the error state")                     \
	X(ENG_CLIENT_SIGBUS, SK_WARNING, "a client removed memory that it had shared (SIGBUS)")    \
	X(ENG_PAGE_WAIT, SK_NORMAL, "a QP waited for missing pages of its client's memory")        \
	X(ENG_PAGE_RATE, SK_NOTICE,                                                                \
		"a QP waited longer for missing pages, because its user requests too many")        \
	X(ENG_SOCKET_RATE, SK_NOTICE,                                                              \
		"attaching or passing memory waited, because the user does it too often")          \
	X(ENG_SOCKET_FULL, SK_NOTICE,                                                              \
		"a connection was refused, because too many have not attached")                    \
	X(ENG_WAKE_SLOW, SK_NOTICE,                                                                \
		"a user is woken by a thread from now on, because its wake-ups took long")         \
	X(ENG_CLIENT_DEAD, SK_NOTICE, "a client ended, or was removed after an error")             \
	X(ENG_QUOTA, SK_NOTICE, "a command was refused because it exceeded a quota")               \
	X(ENG_HANDOFF, SK_NORMAL,                                                                  \
		"a frame was handed off to the transport stage of its connection")                 \
	X(ENG_HANDOFF_COPY, SK_NORMAL,                                                             \
		"a copy of a frame that concerns all transport stages was passed to another one")  \
	X(ENG_HANDOFF_FULL, SK_WARNING, "a frame was dropped because the hand-off ring was full")  \
	X(ENG_LANE, SK_NORMAL,                                                                     \
		"a frame to send was passed to a transport stage that has a send queue")           \
	X(ENG_CROSS, SK_NORMAL,                                                                    \
		"a message between a transport stage and an engine stage of another loop")         \
	X(ENG_DATAGRAM, SK_NORMAL, "a datagram was passed to the engine stage of its QP")          \
	X(ENG_DATAGRAM_FULL, SK_NOTICE,                                                            \
		"a datagram was dropped because the ring to the stage of its QP was full")         \
	X(ENG_LOOP_PORT, SK_NORMAL, "a frame was sent over the loop port")                         \
	X(ENG_CM_STATE, SK_FATAL,                                                                  \
		"an event arrived in a connection state that does not permit it")                  \
	X(ENG_FALCON_NO_CONN, SK_NOTICE, "a Falcon packet belonged to no connection")              \
	X(ENG_FALCON_INNER, SK_WARNING,                                                            \
		"the inner IP header of a Falcon packet did not match its connection")             \
	X(ENG_FALCON_SPI_TOLD, SK_WARNING,                                                         \
		"wrong SPIs were reported to the connection manager (Falcon 9.2.2.3)")             \
	X(ENG_FALCON_REKEYED, SK_NORMAL, "a Falcon connection changed to a new SPI and key")       \
	X(ENG_FALCON_DEVICE_KEY, SK_NORMAL, "a device key was changed (Falcon 9.2.2.3)")           \
	X(ENG_FALL_BACK, SK_NOTICE, "a connect was repeated at MPA revision 1")                    \
	X(ENG_CONNECT_AGAIN, SK_NOTICE,                                                            \
		"a connect met no listener and is repeated for up to half a second")               \
	X(ENG_REQUEST_REFUSED, SK_NOTICE,                                                          \
		"a connect request was refused: no listener, or no free resource")                 \
	X(ENG_REQUEST_TIMEOUT, SK_NOTICE,                                                          \
		"a connect request timed out: its listener did not answer")                        \
	X(ENG_CONN_SHARE, SK_WARNING,                                                              \
		"a connection was refused: its user holds its share of a transport stage's")       \
	X(ENG_CUT_SHARE, SK_NOTICE,                                                                \
		"TCP did not cut a record: its user's cuts hold their share of the send mbufs")    \
	X(ENG_LEFT_SHARE, SK_WARNING,                                                              \
		"a connection was reset instead of left: its user has left too many records")      \
	X(ENG_HOST_REFUSED, SK_NOTICE,                                                             \
		"a host connection was refused: too many of one network, or in all")

SK_REASONS_DECLARE(eng, ENG_NONE, ENG_REASONS)

#endif
