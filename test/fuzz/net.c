/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes lib/net with hostile frames and jumps of time. The input is a list of {action, length,
 * bytes}; frames go through wire_pkt_parse() as in the engine. Every frame that was held comes back
 * once.
 */
#include <stdlib.h>
#include <string.h>

#include "../../lib/net/net.h"

static long held;

static void
fuzz_send(void *ctx, uint16_t port, const uint8_t *frame, size_t len)
{
	struct wire_pkt pkt;

	/* Sent frames are well-formed. */
	if (wire_pkt_parse(&pkt, frame, len, len) != 0)
		abort();
}

static void
fuzz_release(void *ctx, uint16_t port, void *frame, const uint8_t *dst_mac)
{
	held--;
}

static void
fuzz_error(void *ctx, uint16_t port, uint16_t vlan, const struct wire_icmp *icmp)
{
}

static void
fuzz_frame(struct net_stack *n, uint64_t now, const uint8_t *p, size_t len)
{
	struct wire_pkt pkt;
	uint8_t *exact = malloc(len + 1);

	memcpy(exact, p, len);
	if (wire_pkt_parse(&pkt, exact, len, len) == 0) {
		net_input(n, now, 0, &pkt, exact, len);
		if (pkt.eth.type != ETH_ARP)
			net_accept(n, 0, &pkt);
	}
	free(exact);
}

static void
fuzz_path(struct net_stack *n, uint64_t now, const uint8_t *p, size_t len)
{
	struct sk_addr src = {{0}}, dst = {{0}};
	struct net_path path;
	uint8_t head[ETH_MAX + IP_MAX];

	memcpy(dst.b, p, len < 16 ? len : 16);
	if (net_path_init(n, &path, &src, &dst, IP_TCP, now) != 0)
		return;
	if (net_path_check(n, &path, now) == 1) {
		held++;
		net_hold(n, &path, &held);
	}
	net_path_confirm(n, &path, now);
	net_head_emit(head, &path, 1000, 3, 1, false);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct net_ops ops = {fuzz_send, fuzz_release, fuzz_error};
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	struct net_stack *n = net_create(&ops, NULL, 0);
	struct sk_addr v4 = {{[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1}};
	struct sk_addr v6 = {{0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
	uint64_t now = 0;

	held = 0;
	net_if_add(n, 0, ETH_NO_VLAN, mac, 1500);
	net_if_add(n, 0, 42, mac, 9000);
	net_addr_add(n, 0, &v4, 24, now);
	net_addr_add(n, 1, &v6, 64, now);
	while (size >= 2) {
		size_t len = data[1] < size - 2 ? data[1] : size - 2;

		switch (data[0] % 4) {
		case 0:
		case 1:
			fuzz_frame(n, now, data + 2, len);
			break;
		case 2:
			fuzz_path(n, now, data + 2, len);
			break;
		default:
			now += (uint64_t)data[1] << 26;
			net_poll(n, now);
			len = 0;
			break;
		}
		data += 2 + len;
		size -= 2 + len;
	}
	net_destroy(n);
	if (held != 0)
		abort();
	return 0;
}
