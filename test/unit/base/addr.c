/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: text forms and classes. */
#include <criterion/criterion.h>
#include <errno.h>

#include "../../../lib/base/addr.h"
#include "../../support/addr.h"

Test(addr, text_forms_rfc4291_2_2_rfc5952)
{
	static const char *const row[][2] = {
		{"192.0.2.1", "192.0.2.1"},
		{"255.255.255.255", "255.255.255.255"},
		{"2001:db8::1", "2001:db8::1"},
		{"2001:0DB8:0:0:0:0:0:0001", "2001:db8::1"},
		{"::", "::"},
		{"::1", "::1"},
		{"::ffff:10.0.0.1", "10.0.0.1"},
		{"fe80:0:0:1:0:0:0:1", "fe80:0:0:1::1"},
		{"1111:2222:3333:4444:5555:6666:7777:8888",
			"1111:2222:3333:4444:5555:6666:7777:8888"},
	};
	char buf[SK_ADDR_STRLEN];

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct sk_addr a = addr(row[i][0]);

		cr_assert_eq(sk_addr_str(&a, buf), buf);
		cr_assert_str_eq(buf, row[i][1]);
	}
}

Test(addr, what_is_no_address_is_refused)
{
	static const char *const bad[] = {"", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.4 ",
		" 1.2.3.4", "host", "2001:db8::1::2", "12345::", "::g", "1.2.3.4/24",
		"fe80::1%eth0"};
	struct sk_addr a;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(sk_addr_parse(bad[i], &a), -EINVAL, "'%s'", bad[i]);
}

Test(addr, ipv4_is_kept_as_mapped_ipv6_rfc4291_2_5_5_2)
{
	static const uint8_t v4[4] = {192, 0, 2, 1};
	static const uint8_t want[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};
	struct sk_addr a = sk_addr_v4(v4), b = addr("192.0.2.1"), c = addr("::192.0.2.1");

	cr_assert_arr_eq(a.b, want, 16);
	cr_assert(sk_addr_eq(&a, &b));
	cr_assert(sk_addr_is_v4(&a));
	cr_assert(!sk_addr_is_v4(&c));
	cr_assert(!sk_addr_eq(&a, &c));
}

Test(addr, classes)
{
	static const struct {
		const char *text;
		bool any, multicast, link_local, loopback;
	} row[] = {
		{"0.0.0.0", true, false, false, false},
		{"::", true, false, false, false},
		{"0.0.0.1", false, false, false, false},
		{"126.255.255.255", false, false, false, false},
		{"127.0.0.0", false, false, false, true},
		{"127.255.255.255", false, false, false, true},
		{"128.0.0.0", false, false, false, false},
		{"223.255.255.255", false, false, false, false},
		{"224.0.0.0", false, true, false, false},
		{"239.255.255.255", false, true, false, false},
		{"240.0.0.0", false, false, false, false},
		{"::1", false, false, false, true},
		{"::2", false, false, false, false},
		{"ff02::1", false, true, false, false},
		{"fe7f::1", false, false, false, false},
		{"fe80::1", false, false, true, false},
		{"febf::1", false, false, true, false},
		{"fec0::1", false, false, false, false},
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct sk_addr a = addr(row[i].text);

		cr_assert_eq(sk_addr_is_any(&a), row[i].any, "%s", row[i].text);
		cr_assert_eq(sk_addr_is_multicast(&a), row[i].multicast, "%s", row[i].text);
		cr_assert_eq(sk_is_link_local(&a), row[i].link_local, "%s", row[i].text);
		cr_assert_eq(sk_is_loopback(&a), row[i].loopback, "%s", row[i].text);
	}
}

Test(addr, common_bits_and_prefixes)
{
	struct sk_addr a = addr("2001:db8::1");

	for (unsigned bit = 0; bit <= 128; bit++) {
		struct sk_addr b = a;

		if (bit < 128)
			b.b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		cr_assert_eq(sk_prefix_common(&a, &b), bit);
		for (unsigned bits = 0; bits <= 128; bits++)
			cr_assert_eq(sk_in_prefix(&a, &b, bits), bits <= bit, "%u %u", bit, bits);
	}
}

Test(addr, the_link_local_address_of_a_mac_rfc4291_a)
{
	static const uint8_t mac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
	struct sk_addr a = sk_link_local_of_mac(mac), want = addr("fe80::11:22ff:fe33:4455");

	cr_assert(sk_addr_eq(&a, &want));
}
