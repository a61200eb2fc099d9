/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the kinds of device: each row is complete, and the verbs show what it holds. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "../../../drivers/verbs/events_priv.h"
#include "../../../drivers/verbs/ops_priv.h"
#include "../../../drivers/verbs/qp_priv.h"
#include "../../../lib/client/path.h"

/* ---- libsaker and the other files of the library ---- */

static struct saker_device info = {
	.mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55},
	.naddrs = 2,
	.falcon = 1,
	.mtu = 1500,
	.max_qp = 8,
};
static bool engine_gone;
static struct saker_qp_attr created; /* by saker_qp_create() */

const struct saker_device *
vb_saker_device(void)
{
	errno = engine_gone ? ECONNREFUSED : 0;
	return engine_gone ? NULL : &info;
}

void
vb_retire_begin(struct vb_retire *r)
{
}

void
vb_retire_end(struct vb_retire *r, bool destroyed)
{
}

void
vb_qp_set_state(struct vb_qp *qp, enum ibv_qp_state state)
{
	qp->ex.qp_base.state = state;
}

int
vb_wr_init(struct vb_qp *qp, uint64_t ops)
{
	return 0;
}

void
vb_wr_fini(struct vb_qp *qp)
{
}

static struct saker_class ah_traffic; /* of the last address handle */

int
saker_ah_create_class(struct saker_pd *pd, const struct sk_addr *remote,
	enum saker_ordering ordering, const struct saker_class *traffic, struct saker_ah **out)
{
	ah_traffic = *traffic;
	return 0;
}

int
saker_ah_destroy(struct saker_ah *ah)
{
	return 0;
}

int
saker_pd_create(struct saker *s, struct saker_pd **out)
{
	return 0;
}

int
saker_pd_destroy(struct saker_pd *pd)
{
	return 0;
}

int
saker_xrcd_open(struct saker *s, uint64_t dev, uint64_t ino, bool create, bool exclusive,
	struct saker_xrcd **out)
{
	return 0;
}

int
saker_xrcd_close(struct saker_xrcd *x)
{
	return 0;
}

int
saker_qp_open(struct saker_xrcd *x, uint32_t qpn, struct saker_qp **out)
{
	return 0;
}

int
saker_qp_create(struct saker_pd *pd, struct saker_qp_attr *attr, struct saker_qp **out)
{
	created = *attr;
	return 0;
}

int
saker_qp_destroy(struct saker_qp *qp)
{
	return 0;
}

int
saker_qp_query(struct saker_qp *qp, struct saker_qp_info *out)
{
	return -ENOSYS;
}

uint32_t
saker_qp_num(const struct saker_qp *qp)
{
	return 7;
}

void
cl_sq_doorbell(struct cl_sq *sq)
{
}

int
cl_sq_refusal(const struct cl_sq *sq)
{
	return -EPIPE;
}

uint32_t
cl_ah_handle(const struct saker_ah *ah)
{
	return 0;
}

/* ---- What the rows contain ---- */

static struct ibv_context *
context_of(enum saker_transport transport)
{
	static struct vb_context contexts[VB_NKINDS];
	struct vb_context *c = &contexts[transport];
	struct vb_device *d = vb_device_of(transport);

	cr_assert_not_null(d);
	c->kind = d->kind;
	c->info = info;
	c->vctx.context.device = &d->dev;
	return &c->vctx.context;
}

Test(kind, each_row_is_complete)
{
	for (int i = 0; i < VB_NKINDS; i++) {
		const struct vb_kind *k = &vb_kinds[i];
		union ibv_gid gid;

		cr_assert_eq(vb_kind_transport(k), i);
		cr_assert_not_null(k->transport, "row %d", i);
		cr_assert_not_null(k->name, "row %d", i);
		cr_assert_leq(strlen(k->name), 48, "row %d", i);
		cr_assert_not_null(k->offered, "row %d", i);
		cr_assert_not_null(k->gid_count, "row %d", i);
		cr_assert_not_null(k->gid, "row %d", i);
		cr_assert_gt(k->gid_count(&info), 0, "row %d", i);
		for (uint32_t n = 0; n < k->gid_count(&info); n++)
			k->gid(&info, n, &gid);
		cr_assert_neq(k->node_type, 0, "row %d", i);
		cr_assert_neq(k->guid_byte, 0, "row %d", i);
		cr_assert_neq(k->cap_flags, 0, "row %d", i);
		cr_assert(vb_kind_has_qp_type(k, IBV_QPT_RC), "row %d", i);
		cr_assert(k->init_attr.init & k->init_attr.rtr & k->init_attr.rts & IBV_QP_STATE,
			"row %d", i);
		cr_assert_neq(k->init_access, 0, "row %d", i);
		cr_assert_neq(k->rejected_status, 0, "row %d", i);
	}
}

Test(kind, each_row_agrees_with_itself)
{
	for (int i = 0; i < VB_NKINDS; i++) {
		const struct vb_kind *k = &vb_kinds[i];
		bool xrc = (k->cap_flags & IBV_DEVICE_XRC) != 0;

		cr_assert_eq(vb_kind_has_qp_type(k, IBV_QPT_UD), k->max_ah > 0, "row %d", i);
		cr_assert_eq(vb_kind_has_qp_type(k, IBV_QPT_XRC_SEND), xrc, "row %d", i);
		cr_assert_eq(vb_kind_has_qp_type(k, IBV_QPT_XRC_RECV), xrc, "row %d", i);
		cr_assert_not(vb_kind_has_qp_type(k, IBV_QPT_UC), "row %d", i);
		cr_assert_not(vb_kind_has_qp_type(k, IBV_QPT_DRIVER), "row %d", i);
		/* A QP that a program connects needs a path to its peer. */
		cr_assert_eq(
			(k->init_attr.rtr & IBV_QP_AV) != 0, k->modified_by_program, "row %d", i);
	}
}

Test(kind, each_row_has_names_of_its_own)
{
	for (int i = 0; i < VB_NKINDS; i++)
		for (int j = 0; j < i; j++) {
			cr_assert_str_neq(vb_kinds[i].transport, vb_kinds[j].transport);
			cr_assert_str_neq(vb_kinds[i].name, vb_kinds[j].name);
			cr_assert_neq(vb_kinds[i].guid_byte, vb_kinds[j].guid_byte);
		}
}

/* ---- The devices ---- */

/* Returns the names of the listed devices, each followed by a space. */
static const char *
listed(void)
{
	static char names[256];
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	names[0] = '\0';
	for (int i = 0; i < n; i++) {
		strcat(names, ibv_get_device_name(list[i]));
		strcat(names, " ");
	}
	cr_assert_null(list[n]);
	ibv_free_device_list(list);
	return names;
}

Test(kind, the_list_has_what_the_saker_offers_and_the_user_asked_for)
{
	unsetenv("SAKER_DEVICE");
	unsetenv("SAKER_DEVICES");
	cr_assert_str_eq(listed(), "saker0 sakerf0 ");
	setenv("SAKER_DEVICES", "falcon", 1);
	cr_assert_str_eq(listed(), "sakerf0 ");
	setenv("SAKER_DEVICES", "falcon,iwarp", 1);
	cr_assert_str_eq(listed(), "saker0 sakerf0 ");
	info.falcon = 0;
	cr_assert_str_eq(listed(), "saker0 ");
	cr_assert_null(vb_device_of(SAKER_FALCON));
	cr_assert_eq(errno, ENODEV);
	engine_gone = true;
	cr_assert_str_eq(listed(), "");
	cr_assert_null(vb_device_of(SAKER_IWARP));
	cr_assert_eq(errno, ECONNREFUSED);
}

Test(kind, the_list_begins_with_the_device_that_rdma_cm_uses)
{
	unsetenv("SAKER_DEVICES");
	setenv("SAKER_DEVICE", "falcon", 1);
	cr_assert_str_eq(listed(), "sakerf0 saker0 ");
	setenv("SAKER_DEVICE", "iwarp", 1);
	cr_assert_str_eq(listed(), "saker0 sakerf0 ");
	setenv("SAKER_DEVICE", "other", 1);
	cr_assert_str_eq(listed(), "saker0 sakerf0 ");
	setenv("SAKER_DEVICE", "falcon", 1);
	info.falcon = 0;
	cr_assert_str_eq(listed(), "saker0 ");
}

Test(kind, a_device_is_as_its_row_describes_it)
{
	static const struct {
		enum saker_transport transport;
		enum ibv_node_type node_type;
		enum ibv_transport_type transport_type;
		const char *dev_name, *dev_path, *ibdev_path;
		uint8_t guid[8];
	} rows[] = {
		{SAKER_IWARP, IBV_NODE_RNIC, IBV_TRANSPORT_IWARP, "uverbs-saker0",
			"/sys/class/infiniband_verbs/uverbs-saker0", "/sys/class/infiniband/saker0",
			{0x00, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55}},
		{SAKER_FALCON, IBV_NODE_CA, IBV_TRANSPORT_IB, "uverbs-sakerf0",
			"/sys/class/infiniband_verbs/uverbs-sakerf0",
			"/sys/class/infiniband/sakerf0",
			{0x00, 0x11, 0x22, 0xff, 0xfa, 0x33, 0x44, 0x55}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_device *d = context_of(rows[i].transport)->device;
		__be64 guid = ibv_get_device_guid(d);

		cr_assert_eq(d->node_type, rows[i].node_type);
		cr_assert_eq(d->transport_type, rows[i].transport_type);
		cr_assert_str_eq(d->dev_name, rows[i].dev_name);
		cr_assert_str_eq(d->dev_path, rows[i].dev_path);
		cr_assert_str_eq(d->ibdev_path, rows[i].ibdev_path);
		cr_assert_arr_eq(&guid, rows[i].guid, sizeof(guid));
		cr_assert_eq(ibv_get_device_index(d), (int)rows[i].transport);
	}
}

Test(kind, the_query_of_a_device_shows_its_capabilities)
{
	const unsigned int both = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_PORT_ACTIVE_EVENT |
				  IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				  IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_SRQ_RESIZE;
	struct ibv_device_attr a;

	cr_assert_eq(ibv_query_device(context_of(SAKER_IWARP), &a), 0);
	cr_assert_eq(a.device_cap_flags, both);
	cr_assert_eq(a.max_ah, 0);
	cr_assert_eq(a.max_qp, 8);
	cr_assert_eq(ibv_query_device(context_of(SAKER_FALCON), &a), 0);
	cr_assert_eq(a.device_cap_flags, both | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_XRC);
	cr_assert_eq(a.max_ah, 65536);
}

Test(kind, the_query_of_a_device_names_vendor_part_and_firmware)
{
	struct ibv_device_attr a[VB_NKINDS];

	for (int t = 0; t < VB_NKINDS; t++) {
		struct ibv_context *c = context_of((enum saker_transport)t);

		cr_assert_eq(ibv_query_device(c, &a[t]), 0);
		cr_assert_eq(a[t].vendor_id, 0x73616b);
		cr_assert_str_eq(a[t].fw_ver, SAKER_VERSION);
		cr_assert_eq(a[t].node_guid, ibv_get_device_guid(c->device));
		cr_assert_neq(a[t].sys_image_guid, 0);
	}
	cr_assert_neq(a[SAKER_IWARP].vendor_part_id, a[SAKER_FALCON].vendor_part_id);
	cr_assert_neq(a[SAKER_IWARP].node_guid, a[SAKER_FALCON].node_guid);
	cr_assert_eq(a[SAKER_IWARP].sys_image_guid, a[SAKER_FALCON].sys_image_guid);
}

Test(kind, the_port_has_the_speed_of_the_link)
{
	static const struct {
		uint32_t mbps;
		uint8_t width, speed;
	} rows[] = {{0, 1, 4}, {1000, 1, 1}, {10000, 1, 4}, {25000, 1, 32}, {40000, 2, 4},
		{100000, 2, 32}, {200000, 2, 64}, {400000, 2, 128}};
	struct ibv_port_attr port;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		info.speed = rows[i].mbps;
		cr_assert_eq(vb_query_port(context_of(SAKER_IWARP), 1, &port, sizeof(port)), 0);
		cr_assert_eq(port.active_width, rows[i].width, "%u Mb/s", rows[i].mbps);
		cr_assert_eq(port.active_speed, rows[i].speed, "%u Mb/s", rows[i].mbps);
	}
}

Test(kind, an_iWARP_device_has_its_MAC_address_as_its_GID)
{
	struct ibv_context *c = context_of(SAKER_IWARP);
	struct ibv_port_attr port;
	struct ibv_gid_entry e[3];
	union ibv_gid gid;

	cr_assert_eq(vb_query_port(c, 1, &port, sizeof(port)), 0);
	cr_assert_eq(port.gid_tbl_len, 1);
	memset(&gid, 0xff, sizeof(gid));
	cr_assert_eq(ibv_query_gid(c, 1, 0, &gid), 0);
	cr_assert_arr_eq(gid.raw, info.mac, 6);
	for (int i = 6; i < 16; i++)
		cr_assert_eq(gid.raw[i], 0);
	cr_assert_eq(ibv_query_gid(c, 1, 1, &gid), -1);
	cr_assert_eq(ibv_query_gid_table(c, e, 3, 0), 1);
	cr_assert_eq(e[0].gid_type, IBV_GID_TYPE_IB);
}

Test(kind, a_Falcon_device_has_its_addresses_as_its_GIDs)
{
	struct ibv_context *c;
	struct ibv_port_attr port;
	struct ibv_gid_entry e[3];
	union ibv_gid gid;

	cr_assert_eq(sk_addr_parse("192.0.2.1", &info.addrs[0]), 0);
	cr_assert_eq(sk_addr_parse("2001:db8::1", &info.addrs[1]), 0);
	c = context_of(SAKER_FALCON);
	cr_assert_eq(vb_query_port(c, 1, &port, sizeof(port)), 0);
	cr_assert_eq(port.gid_tbl_len, 2);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(ibv_query_gid(c, 1, i, &gid), 0);
		cr_assert_arr_eq(gid.raw, info.addrs[i].b, 16);
	}
	cr_assert_eq(ibv_query_gid(c, 1, 2, &gid), -1);
	cr_assert_eq(ibv_query_gid(c, 2, 0, &gid), -1);
	cr_assert_eq(ibv_query_gid_table(c, e, 1, 0), -EINVAL, "the table does not fit");
	cr_assert_eq(ibv_query_gid_table(c, e, 3, 0), 2);
	cr_assert_eq(e[1].gid_type, IBV_GID_TYPE_ROCE_V2);
	cr_assert_eq(e[1].gid_index, 1);
}

/* ---- Objects ---- */

Test(kind, a_device_has_the_QP_types_of_its_row)
{
	static const struct {
		enum ibv_qp_type type;
		int shm[VB_NKINDS]; /* -1: the device has none */
	} rows[] = {
		{IBV_QPT_RC, {[SAKER_IWARP] = SAKER_RC, [SAKER_FALCON] = SAKER_RC}},
		{IBV_QPT_UD, {[SAKER_IWARP] = -1, [SAKER_FALCON] = SAKER_UD}},
		{IBV_QPT_XRC_SEND, {[SAKER_IWARP] = -1, [SAKER_FALCON] = SAKER_XRC_SEND}},
		{IBV_QPT_XRC_RECV, {[SAKER_IWARP] = -1, [SAKER_FALCON] = SAKER_XRC_RECV}},
		{IBV_QPT_UC, {[SAKER_IWARP] = -1, [SAKER_FALCON] = -1}},
		{IBV_QPT_RAW_PACKET, {[SAKER_IWARP] = -1, [SAKER_FALCON] = -1}},
		{IBV_QPT_DRIVER, {[SAKER_IWARP] = -1, [SAKER_FALCON] = -1}},
	};
	struct vb_xrcd xrcd = {0};
	struct vb_pd pd = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int t = 0; t < VB_NKINDS; t++) {
			struct ibv_qp_init_attr_ex a = {.qp_type = rows[i].type,
				.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD,
				.pd = &pd.pd,
				.xrcd = &xrcd.xrcd};
			struct ibv_qp *qp;

			qp = vb_create_qp_ex(context_of((enum saker_transport)t), &a);
			if (rows[i].shm[t] < 0) {
				cr_assert_null(qp, "row %zu", i);
				cr_assert_eq(errno, EOPNOTSUPP, "row %zu", i);
				continue;
			}
			cr_assert_not_null(qp, "row %zu", i);
			cr_assert_eq(created.transport, (enum saker_transport)t);
			cr_assert_eq(created.type, rows[i].shm[t]);
			cr_assert_eq(ibv_destroy_qp(qp), 0);
		}
}

Test(kind, receives_may_be_posted_from_the_rows_state_on)
{
	static _Alignas(SHM_LINE) uint8_t entries[16 * SHM_LINE];

	for (int t = 0; t < VB_NKINDS; t++) {
		enum ibv_qp_state first = t == SAKER_IWARP ? IBV_QPS_RESET : IBV_QPS_INIT;
		struct {
			struct cl_sq sq;
			struct cl_rq rq;
		} queues = {.rq.ring = {.entries = entries, .count = 16, .stride = SHM_LINE}};
		struct ibv_recv_wr wr = {0}, *bad = NULL;
		struct vb_qp qp = {.saker = (struct saker_qp *)&queues};
		uint32_t gone = 0;

		queues.rq.gone = &gone;
		qp.ex.qp_base.context = context_of((enum saker_transport)t);
		for (int state = IBV_QPS_RESET; state <= IBV_QPS_ERR; state++) {
			int want = state < (int)first ? EINVAL : 0;
			uint32_t before = queues.rq.ring.next;

			qp.ex.qp_base.state = (enum ibv_qp_state)state;
			cr_assert_eq(vb_post_recv(&qp.ex.qp_base, &wr, &bad), want);
			cr_assert_eq(queues.rq.ring.next, before + (want == 0));
		}
	}
}

Test(kind, address_handles_need_a_GID_and_a_device_that_has_them)
{
	struct ibv_ah_attr attr = {.is_global = 1};
	struct vb_pd pd = {0};
	struct ibv_ah *ah;

	pd.pd.context = context_of(SAKER_IWARP);
	cr_assert_null(ibv_create_ah(&pd.pd, &attr));
	cr_assert_eq(errno, EOPNOTSUPP);
	pd.pd.context = context_of(SAKER_FALCON);
	ah = ibv_create_ah(&pd.pd, &attr);
	cr_assert_not_null(ah);
	cr_assert_eq(ibv_destroy_ah(ah), 0);
	attr.is_global = 0;
	for (int t = 0; t < VB_NKINDS; t++) {
		pd.pd.context = context_of((enum saker_transport)t);
		cr_assert_null(ibv_create_ah(&pd.pd, &attr));
		cr_assert_eq(errno, EINVAL);
	}
}

Test(kind, address_handles_have_the_class_of_their_path)
{
	struct ibv_ah_attr attr = {.is_global = 1};
	struct vb_pd pd = {.pd.context = context_of(SAKER_FALCON)};
	struct ibv_ah *ah = ibv_create_ah(&pd.pd, &attr);

	cr_assert_eq(ibv_destroy_ah(ah), 0);
	cr_assert_eq(ah_traffic.set, 0, "0 is the value of a program that names no class");
	attr.grh.traffic_class = 106;
	attr.grh.flow_label = 0x12345;
	attr.sl = 3;
	ah = ibv_create_ah(&pd.pd, &attr);
	cr_assert_eq(ibv_destroy_ah(ah), 0);
	cr_assert_eq(ah_traffic.set, SAKER_CLASS_TRAFFIC | SAKER_CLASS_PRIORITY | SAKER_CLASS_FLOW);
	cr_assert_eq(ah_traffic.traffic_class, 106);
	cr_assert_eq(ah_traffic.flow_label, 0x12345);
	cr_assert_eq(ah_traffic.priority, 3);
	attr.grh.flow_label = UINT32_MAX;
	attr.sl = 15;
	ah = ibv_create_ah(&pd.pd, &attr);
	cr_assert_eq(ibv_destroy_ah(ah), 0);
	cr_assert_eq(ah_traffic.flow_label, 0xfffff, "bits that do not fit do not count");
	cr_assert_eq(ah_traffic.priority, 7);
}

Test(kind, XRC_domains_need_a_device_that_has_them)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
	struct ibv_xrcd *x;

	cr_assert_null(vb_open_xrcd(context_of(SAKER_IWARP), &attr));
	cr_assert_eq(errno, EOPNOTSUPP);
	x = vb_open_xrcd(context_of(SAKER_FALCON), &attr);
	cr_assert_not_null(x);
	cr_assert_eq(vb_close_xrcd(x), 0);
}

Test(kind, only_iWARP_places_data_in_order)
{
	struct ibv_qp qp = {.context = context_of(SAKER_IWARP)};

	cr_assert_eq(ibv_query_qp_data_in_order(&qp, IBV_WR_RDMA_WRITE, 0), 1);
	cr_assert_eq(ibv_query_qp_data_in_order(&qp, IBV_WR_RDMA_WRITE, 1), 0);
	qp.context = context_of(SAKER_FALCON);
	cr_assert_eq(ibv_query_qp_data_in_order(&qp, IBV_WR_RDMA_WRITE, 0), 0);
}

/* ---- The modes of connections ---- */

Test(kind, the_environment_sets_the_modes_of_falcons_connections)
{
	struct vb_context falcon = {.kind = &vb_kinds[SAKER_FALCON]},
			  iwarp = {.kind = &vb_kinds[SAKER_IWARP]};
	struct saker_modes m;

	cr_assert_eq(vb_modes(&falcon.vctx.context, &m), 0);
	cr_assert_eq(m.ordering, SAKER_ORDER_CONFIGURED);
	cr_assert_eq(m.errors, SAKER_ERRORS_CONFIGURED);
	cr_assert_eq(m.flows, 0);
	cr_assert_eq(m.mtu, 0);
	cr_assert_eq(m.psp, 0);
	setenv("SAKER_FALCON_ORDERING", "Weak", 1);
	setenv("SAKER_FALCON_ERRORS", "complete", 1);
	setenv("SAKER_FALCON_FLOWS", "4", 1);
	setenv("SAKER_FALCON_MTU", "1k", 1);
	cr_assert_neq(vb_modes(&falcon.vctx.context, &m), 0, "k is 1000");
	setenv("SAKER_FALCON_MTU", "1024", 1);
	setenv("SAKER_FALCON_PSP", "gcm256, gmac128", 1);
	cr_assert_eq(vb_modes(&falcon.vctx.context, &m), 0);
	cr_assert_eq(m.ordering, SAKER_ORDER_WEAK);
	cr_assert_eq(m.errors, SAKER_ERRORS_COMPLETE);
	cr_assert_eq(m.flows, 4);
	cr_assert_eq(m.mtu, 1024);
	cr_assert_eq(m.psp, SAKER_PSP_GCM256 | SAKER_PSP_GMAC128);
	for (int i = 0; i < 5; i++) {
		static const char *const name[] = {"SAKER_FALCON_ORDERING", "SAKER_FALCON_ERRORS",
			"SAKER_FALCON_FLOWS", "SAKER_FALCON_MTU", "SAKER_FALCON_PSP"};
		static const char *const wrong[] = {"any", "fatal", "2", "700", "gcm512"};

		setenv(name[i], wrong[i], 1);
		cr_assert_eq(vb_modes(&falcon.vctx.context, &m), EINVAL, "%s", name[i]);
		cr_assert_eq(vb_modes(&iwarp.vctx.context, &m), 0, "iWARP has no modes");
		unsetenv(name[i]);
	}
}
