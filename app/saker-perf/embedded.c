/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The embedded form: both ends in one process, each on an lcore of its own with its own engine.
 * Rounds of the floor and of the transport alternate on the same ports, so that changes in the
 * machine's speed affect both.
 */
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "perf.h"

#define FLOOR_LAT 2000u /* messages of a round of the floor's latency with --duration */
#define FRAMES    500u  /* of a round that shows where the processors are */

/* The addresses: the first of the accepting end, the others of the connecting end, which uses all
 * of them when one does not have enough local ports. */
static const char *const addresses[1 + PERF_LOCALS] = {"10.0.0.2/24", "10.0.0.1/24", "10.0.0.3/24"};

struct side {
	struct perf_end end;
	struct perf_floor floor;
	/* The ping-pong of a 64-byte frame beside each round, whatever the test is. */
	struct perf_options frame_options;
	struct perf_floor frame;
	struct perf_figures placement;
	struct sk_hist frame_lat;
	struct perf_figures real, versus;
	struct perf_figures bottom[PERF_FLOOR_KINDS]; /* the floor */
	struct sk_hist real_lat, floor_lat[PERF_FLOOR_KINDS], versus_lat;
	const char *address;
	uint16_t port;
	int cpu; /* the processor of this side */
	int rc;
};

static struct side *sides[2];
static unsigned listening; /* atomic: the accepting side is ready */
static unsigned arrived;   /* atomic: calls of embedded_barrier() by both sides */

/* Waits for the other side, and polls the engine meanwhile if `drive`. */
static void
embedded_barrier(struct side *s, bool drive)
{
	unsigned goal = __atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL) / 2 * 2 + 2;

	while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < goal) {
		if (drive)
			perf_idle(&s->end);
		else
			sched_yield();
	}
}

/* Runs a round of each kind of the floor. No engine may receive a frame of the floor: both sides
 * end their transport's round before the engines settle, and both engines have settled before the
 * floor sends its first frame. */
static int
run_floor(struct side *s, uint32_t iters)
{
	embedded_barrier(s, true);
	perf_settle(&s->end);
	embedded_barrier(s, false);
	if (s->end.active ? perf_floor_run(&s->frame, FRAMES, 0, &s->placement)
			  : perf_floor_serve(&s->frame, FRAMES, 0))
		return -1;
	for (unsigned kind = 0; kind < perf_floor_kinds(s->end.o); kind++) {
		if (s->end.active ? perf_floor_run(&s->floor, iters, kind, &s->bottom[kind])
				  : perf_floor_serve(&s->floor, iters, kind))
			return -1;
	}
	return 0;
}

static int
rounds(struct side *s)
{
	const struct perf_options *o = s->end.o;
	uint32_t each = SK_MAX(1u, o->iters / o->rounds);
	bool floor = o->floor && o->impair == NULL;
	uint32_t bottom = o->duration && o->test == PERF_LAT ? SK_MIN(each, FLOOR_LAT) : each;
	struct sk_hist scrap;
	struct perf_figures warm = {.lat = &scrap}, other = warm;
	uint32_t warmup = SK_MIN(o->warmup, each);

	sk_hist_init(&scrap);
	if (warmup && perf_round(&s->end, 0, warmup, &warm, &other))
		return -1;
	for (uint32_t r = 0; r < o->rounds; r++) {
		if (floor && run_floor(s, bottom))
			return -1;
		if (perf_round(&s->end, r, each, &s->real, &s->versus))
			return -1;
		if (s->end.active)
			perf_progress(o, "round %u of %u: %.2f Gb/s, %.3f Mop/s", r + 1, o->rounds,
				perf_gbps(&s->real), perf_mops(&s->real));
	}
	return 0;
}

/* Reads the address of "ADDR/LEN". */
static int
parse_net(const char *net, struct sk_addr *out)
{
	char text[SK_ADDR_STRLEN + 1];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(net, "/"), net);
	return sk_addr_parse(text, out) < 0 ? -1 : 0;
}

static void
side_clear(struct side *s)
{
	struct sk_hist *hist[] = {&s->real_lat, &s->versus_lat, &s->frame_lat};
	struct perf_figures none = {0};

	for (unsigned i = 0; i < SK_ARRAY_LEN(hist); i++)
		sk_hist_init(hist[i]);
	s->real = s->versus = s->placement = none;
	s->real.lat = &s->real_lat;
	s->versus.lat = &s->versus_lat;
	s->placement.lat = &s->frame_lat;
	for (unsigned i = 0; i < PERF_FLOOR_KINDS; i++) {
		sk_hist_init(&s->floor_lat[i]);
		s->bottom[i] = none;
		s->bottom[i].lat = &s->floor_lat[i];
	}
}

/* Opens the floors of a step: of the message under test, and of a frame of 64 bytes. */
static int
side_floors(struct side *s, const struct perf_options *o)
{
	bool active = s->end.active;

	s->frame_options = *o;
	s->frame_options.size = 64;
	s->frame_options.op = PERF_WRITE;
	s->frame_options.test = PERF_LAT;
	s->frame_options.psp = 0;
	if (perf_floor_open(&s->floor, o, s->port, active ? "floor_active" : "floor_passive"))
		return -1;
	return perf_floor_open(
		&s->frame, &s->frame_options, s->port, active ? "frame_active" : "frame_passive");
}

static void
side_report(const struct side *s, const struct perf_options *o, unsigned step, unsigned steps)
{
	struct perf_report report = {.o = o, .step = step, .steps = steps};

	report.real = s->real;
	report.floor = s->bottom[0];
	for (unsigned i = 1; i < PERF_FLOOR_KINDS; i++) {
		if (!perf_is_better(o->test, &s->bottom[i], &report.floor))
			continue;
		report.floor = s->bottom[i];
		report.floor_kind = i;
	}
	report.placement = sk_hist_quantile(&s->frame_lat, 0.5);
	report.versus = s->versus;
	report.errors = perf_mistakes(&s->end);
	report.verified = perf_verified(o);
	report.connect_ns = s->end.connect_ns;
	report.cpu[0] = s->cpu;
	report.cpu[1] = sides[1]->cpu;
	if (o->test != PERF_LAT)
		report.real.lat = report.floor.lat = report.versus.lat = NULL;
	perf_report_print(&report);
}

/* Measures one size. */
static int
side_step(struct side *s, unsigned step)
{
	const struct perf_options *all = s->end.o;
	struct perf_options o = perf_step(all, step);
	int rc;

	side_clear(s);
	s->cpu = sched_getcpu();
	s->end.o = &o;
	rc = side_floors(s, &o) || perf_verify(&s->end) || rounds(s) ? -1 : 0;
	if (rc == 0 && s->end.active)
		side_report(s, &o, step, perf_steps(all));
	perf_floor_close(&s->floor);
	perf_floor_close(&s->frame);
	s->end.o = all;
	return rc;
}

static int
embedded_work(struct side *s)
{
	struct perf_end *e = &s->end;
	struct sk_addr to;

	if (perf_attach(e))
		return -1;
	if (!e->active) {
		if (perf_end_listen(e))
			return -1;
		__atomic_store_n(&listening, 1, __ATOMIC_RELEASE);
		if (perf_end_accept(e))
			return -1;
	} else {
		while (!__atomic_load_n(&listening, __ATOMIC_ACQUIRE))
			perf_idle(e);
		if (parse_net(addresses[0], &to) || perf_end_connect(e, &to))
			return -1;
	}
	for (unsigned step = 0; step < perf_steps(e->o); step++)
		if (side_step(s, step))
			return -1;
	return 0;
}

static int
side_main(void *arg)
{
	struct side *s = arg;

	s->rc = embedded_work(s);
	if (s->rc && s->end.engine != NULL)
		exit(1); /* the other side would wait forever */
	/* The last word to the other side may be lost, and is then sent again. */
	embedded_barrier(s, true);
	perf_settle(&s->end);
	return 0;
}

/* Sets the local addresses of the connecting end. */
static int
side_locals(struct side *s)
{
	s->end.nlocal = perf_locals(s->end.o);
	for (uint32_t i = 0; i < s->end.nlocal; i++)
		if (parse_net(addresses[1 + i], &s->end.local[i]))
			return -1;
	return 0;
}

static struct side *
side_create(const struct perf_options *o, bool active, uint16_t port)
{
	struct side *s = sk_mem_alloc(sizeof(*s));

	if (s == NULL)
		return NULL;
	s->end.o = o;
	s->port = port;
	s->end.active = active;
	s->end.engine = perf_engine(o, port, &addresses[active], active ? perf_locals(o) : 1);
	if (s->end.engine == NULL || (active && side_locals(s)))
		return NULL;
	return s;
}

int
perf_embedded(const struct perf_options *o)
{
	unsigned worker = rte_get_next_lcore(-1, 1, 0);
	uint16_t ports[2];
	uint64_t errors;

	if (worker >= RTE_MAX_LCORE) {
		fprintf(stderr,
			"saker-perf: two ends in one process require two lcores (EAL's -l)\n");
		return 1;
	}
	if (perf_ports_pair(o, ports))
		return 1;
	for (int i = 0; i < 2; i++) {
		sides[i] = side_create(o, i == 0, ports[i]);
		if (sides[i] == NULL)
			return 1;
	}
	if (o->pcap != NULL && perf_pcap_open(ports[0], o->pcap))
		return 1;
	rte_eal_remote_launch(side_main, sides[1], worker);
	side_main(sides[0]);
	rte_eal_wait_lcore(worker);
	errors = perf_mistakes(&sides[0]->end);
	for (int i = 0; i < 2 && o->counters; i++)
		perf_counters_print(sides[i]->end.engine, ports[i], i ? "passive" : "active");
	/* The other end answers while one ends its connections. */
	sides[0]->end.other = sides[1]->end.engine;
	for (int i = 0; i < 2; i++)
		perf_end_close(&sides[i]->end);
	perf_pcap_close(); /* the engines have sent their last frames */
	return errors != 0;
}
