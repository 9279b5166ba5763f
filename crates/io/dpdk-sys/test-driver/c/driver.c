/* What a NIC's driver sets in the packets that it hands out, on the packets of any other driver.
 *
 * It is a receive callback, which the ethdev library runs inside rte_eth_rx_burst() after the driver's own
 * function: the caller cannot tell the two apart. A driver of its own would need struct rte_eth_dev and
 * struct eth_dev_ops, which are internal to DPDK, differ between releases, and are in no header that Debian
 * ships.
 *
 * Arguments, as a device has them: each key with the number N of a period; every Nth packet, counted from 0, gets it.
 *
 *	rss		a hash, RTE_MBUF_F_RX_RSS_HASH; see mr_test_hash
 *	ptypes		a packet type
 *	good-checksum	RTE_MBUF_F_RX_L4_CKSUM_GOOD and RTE_MBUF_F_RX_IP_CKSUM_GOOD
 *	bad-checksum	the same, bad
 *	no-checksum	RTE_MBUF_F_RX_L4_CKSUM_NONE
 *	vlan		RTE_MBUF_F_RX_VLAN: the tag's number is reported, and the tag is in the frame
 *	vlan-stripped	the tag is taken out of the frame
 *	qinq-stripped	both tags are taken out of the frame
 *	lro		RTE_MBUF_F_RX_LRO
 *	timestamp	RTE_MBUF_F_RX_TIMESTAMP as drivers other than net_pcap set it: by a clock of the device
 *	segments	a second segment of 16 bytes
 *	no-headroom	the frame begins 2 bytes behind the begin of its buffer
 *	frames		bytes of a frame, with the packet's number in them
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_kvargs.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

enum mr_test_key {
	RSS, PTYPES, GOOD_CHECKSUM, BAD_CHECKSUM, NO_CHECKSUM, VLAN, VLAN_STRIPPED, QINQ_STRIPPED, LRO, TIMESTAMP,
	SEGMENTS, NO_HEADROOM, FRAMES, KEYS
};

static const char *const mr_test_names[KEYS + 1] = {
	"rss", "ptypes", "good-checksum", "bad-checksum", "no-checksum", "vlan", "vlan-stripped", "qinq-stripped",
	"lro", "timestamp", "segments", "no-headroom", "frames", NULL
};

struct mr_test_driver {
	uint16_t port, queue;
	const struct rte_eth_rxtx_callback *callback;
	uint64_t number;		/* of the next packet */
	uint64_t periods[KEYS];		/* 0: never */
	uint64_t timestamp_flag;
};

/* The hash of a packet, never 0. */
static uint32_t mr_test_hash(uint64_t number)
{
	return (uint32_t)number * UINT32_C(2654435761) | 1;
}

static void mr_test_frame(struct rte_mbuf *mbuf, uint64_t number, bool stripped)
{
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	uint64_t network = rte_cpu_to_be_64(number);

	memset(frame, 0, mbuf->data_len);
	frame[0] = 2;
	frame[6] = 2;
	frame[11] = 9;
	/* The type of the local experimental protocol 1; as one that has tags, an IPv4 packet's. */
	frame[12] = stripped ? 0x08 : 0x88;
	frame[13] = stripped ? 0x00 : 0xb5;
	memcpy(frame + 14, &network, sizeof(network));
}

static bool mr_test_add_segment(struct rte_mbuf *mbuf)
{
	struct rte_mbuf *segment = rte_pktmbuf_alloc(mbuf->pool);

	if (segment == NULL)
		return false;
	memset(rte_pktmbuf_append(segment, 16), 0x5a, 16);
	segment->ol_flags |= mbuf->ol_flags & RTE_MBUF_F_RX_RSS_HASH;
	mbuf->next = segment;
	mbuf->nb_segs = 2;
	mbuf->pkt_len += 16;
	return true;
}

static inline bool mr_test_due(const struct mr_test_driver *driver, enum mr_test_key key, uint64_t number)
{
	return driver->periods[key] == 1 || (driver->periods[key] != 0 && number % driver->periods[key] == 0);
}

static uint16_t mr_test_receive(uint16_t port, uint16_t queue, struct rte_mbuf *mbufs[], uint16_t count,
				uint16_t most, void *opaque)
{
	struct mr_test_driver *driver = opaque;

	(void)port;
	(void)queue;
	(void)most;
	for (uint16_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = mbufs[i];
		uint64_t number = driver->number++, flags = 0;
		bool one = mr_test_due(driver, VLAN_STRIPPED, number), both = mr_test_due(driver, QINQ_STRIPPED, number);

		if (mr_test_due(driver, NO_HEADROOM, number))
			mbuf->data_off = 2;
		if (mr_test_due(driver, RSS, number)) {
			flags |= RTE_MBUF_F_RX_RSS_HASH;
			mbuf->hash.rss = mr_test_hash(number);
		}
		if (mr_test_due(driver, PTYPES, number))
			mbuf->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_UDP;
		if (mr_test_due(driver, GOOD_CHECKSUM, number))
			flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_GOOD;
		if (mr_test_due(driver, BAD_CHECKSUM, number))
			flags = (flags & ~(RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_GOOD)) |
				RTE_MBUF_F_RX_L4_CKSUM_BAD | RTE_MBUF_F_RX_IP_CKSUM_BAD;
		if (mr_test_due(driver, NO_CHECKSUM, number))
			flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
		if (mr_test_due(driver, LRO, number))
			flags |= RTE_MBUF_F_RX_LRO;
		if (mr_test_due(driver, TIMESTAMP, number))
			flags |= driver->timestamp_flag;
		if (mr_test_due(driver, VLAN, number) || one || both) {
			flags |= RTE_MBUF_F_RX_VLAN;
			mbuf->vlan_tci = 0xa000 | (number & 0xfff);
		}
		if (one || both)
			flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
		if (both) {
			flags |= RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED;
			mbuf->vlan_tci_outer = 77;
		}
		if (mr_test_due(driver, FRAMES, number))
			mr_test_frame(mbuf, number, one || both);
		mbuf->ol_flags |= flags;
		if (mr_test_due(driver, SEGMENTS, number))
			mr_test_add_segment(mbuf);
	}
	return count;
}

static int mr_test_period(const char *key, const char *value, void *opaque)
{
	uint64_t *period = opaque;
	char *end;

	(void)key;
	if (value == NULL)
		return -1;
	*period = strtoull(value, &end, 10);
	return *period == 0 || *end != '\0' ? -1 : 0;
}

/* NULL when there is no such device, or an argument is not known. */
struct mr_test_driver *mr_test_add(const char *device, uint16_t queue, const char *arguments)
{
	struct mr_test_driver *driver = calloc(1, sizeof(*driver));
	struct rte_kvargs *pairs = rte_kvargs_parse(arguments, mr_test_names);
	int offset, error = 0;

	if (driver == NULL || pairs == NULL || rte_eth_dev_get_port_by_name(device, &driver->port) != 0)
		goto fail;
	driver->queue = queue;
	for (int key = 0; key < KEYS; key++)
		if (rte_kvargs_process(pairs, mr_test_names[key], mr_test_period, &driver->periods[key]) != 0)
			error = -1;
	if (error == 0 && driver->periods[TIMESTAMP] != 0)
		error = rte_mbuf_dyn_rx_timestamp_register(&offset, &driver->timestamp_flag);
	if (error == 0)
		driver->callback = rte_eth_add_rx_callback(driver->port, queue, mr_test_receive, driver);
	if (driver->callback == NULL)
		goto fail;
	rte_kvargs_free(pairs);
	return driver;
fail:
	rte_kvargs_free(pairs);
	free(driver);
	return NULL;
}

/* Nobody receives from the queue meanwhile. */
void mr_test_remove(struct mr_test_driver *driver)
{
	rte_eth_remove_rx_callback(driver->port, driver->queue, driver->callback);
	free(driver);
}

/* Whether a device was configured to remove VLAN tags; -1 when there is no such device. */
int mr_test_strips(const char *device)
{
	struct rte_eth_conf conf = { 0 };
	uint16_t port;

	if (rte_eth_dev_get_port_by_name(device, &port) != 0 || rte_eth_dev_conf_get(port, &conf) != 0)
		return -1;
	return (conf.rxmode.offloads & (RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_QINQ_STRIP)) != 0;
}
