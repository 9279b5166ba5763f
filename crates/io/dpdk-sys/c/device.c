/* Devices: attached by name, configured with as many queues as there are workers. */

#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/if_packet.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "internal.h"

int mr_timestamp_offset = -1;
uint64_t mr_timestamp_flag;

/* The symmetric Toeplitz key of Woo and Park: both directions of a flow hash alike. */
static void mr_symmetric_key(uint8_t *key, size_t bytes)
{
	for (size_t at = 0; at < bytes; at++)
		key[at] = at % 2 == 0 ? 0x6d : 0x5a;
}

/* Whether this thread is attaching a device: the driver makes its sockets then. */
static __thread bool mr_attaching;

/* Stands before the C library's function of that name, also for drivers, which are loaded later.
 *
 * net_af_packet joins a fanout group with PACKET_FANOUT_FLAG_DEFRAG and offers no way not to: the kernel
 * would put IP datagrams together before they are received, and what does not fit a frame then would be
 * cut off. Packets are to come as they were on the wire. Everything else is passed on as it is. */
int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	unsigned int fanout;

	if (mr_attaching && level == SOL_PACKET && name == PACKET_FANOUT && length >= sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		fanout &= ~((unsigned int)PACKET_FANOUT_FLAG_DEFRAG << 16);
		return (int)syscall(SYS_setsockopt, socket, level, name, &fanout, (socklen_t)sizeof(fanout));
	}
	return (int)syscall(SYS_setsockopt, socket, level, name, value, length);
}

int mr_device_attach(const char *bus, const char *name, const char *args, uint16_t *port)
{
	int error;

	mr_attaching = true;
	error = rte_eal_hotplug_add(bus, name, args);
	mr_attaching = false;

	/* A PCI device that was named at start is there already. */
	if (error != 0 && error != -EEXIST)
		return error;
	error = rte_eth_dev_get_port_by_name(name, port);
	if (error != 0 && strcmp(bus, "vdev") == 0)
		rte_eal_hotplug_remove(bus, name);
	return error;
}

int mr_device_detach(const char *bus, const char *name)
{
	return rte_eal_hotplug_remove(bus, name);
}

static int mr_queues(uint16_t port, uint16_t queues, uint16_t descriptors, struct rte_mempool *mempool,
		     int node)
{
	uint16_t rx = descriptors, tx = descriptors;
	int error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);

	for (uint16_t queue = 0; queue < queues && error == 0; queue++) {
		error = rte_eth_rx_queue_setup(port, queue, rx, node, NULL, mempool);
		if (error == 0)
			error = rte_eth_tx_queue_setup(port, queue, tx, node, NULL);
	}
	return error;
}

int mr_device_start(uint16_t port, uint16_t queues, uint16_t descriptors, struct mr_pool *pool,
		    struct mr_device *device)
{
	struct rte_eth_conf conf = { 0 };
	struct rte_eth_dev_info info;
	uint8_t key[64];
	int node, error;

	error = rte_eth_dev_info_get(port, &info);
	if (error != 0)
		return error;
	device->port = port;
	device->max_rx_queues = info.max_rx_queues;
	device->max_tx_queues = info.max_tx_queues;
	snprintf(device->driver, sizeof(device->driver), "%s", info.driver_name);
	if (queues > info.max_rx_queues || queues > info.max_tx_queues)
		return -ERANGE;
	device->multi_segment = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
	if (device->multi_segment)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
	/* VLAN tags stay in frames: RTE_ETH_RX_OFFLOAD_VLAN_STRIP is not asked for. See mr_restore_tags. */
	conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads &
		(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	if (queues > 1 && conf.rx_adv_conf.rss_conf.rss_hf != 0) {
		uint8_t bytes = info.hash_key_size;

		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		if (bytes != 0 && bytes <= sizeof(key)) {
			mr_symmetric_key(key, bytes);
			conf.rx_adv_conf.rss_conf.rss_key = key;
			conf.rx_adv_conf.rss_conf.rss_key_len = bytes;
		}
		if (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_RSS_HASH)
			conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_RSS_HASH;
	}
	error = rte_eth_dev_configure(port, queues, queues, &conf);
	if (error != 0 && conf.rxmode.mq_mode == RTE_ETH_MQ_RX_RSS) {
		/* A driver that promises a key length and then refuses the key: flows spread without one. */
		memset(&conf.rx_adv_conf, 0, sizeof(conf.rx_adv_conf));
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
		conf.rxmode.offloads &= ~RTE_ETH_RX_OFFLOAD_RSS_HASH;
		error = rte_eth_dev_configure(port, queues, queues, &conf);
	}
	if (error != 0)
		return error;
	/* To a device that hashes no ports, all flows between two hosts are one. */
	device->rss = conf.rxmode.mq_mode == RTE_ETH_MQ_RX_RSS &&
		(conf.rx_adv_conf.rss_conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV4_TCP) != 0 &&
		(conf.rx_adv_conf.rss_conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV4_UDP) != 0;
	node = rte_eth_dev_socket_id(port);
	error = mr_queues(port, queues, descriptors, pool->mempool, node);
	if (error != 0)
		return error;
	error = rte_eth_dev_start(port);
	if (error != 0)
		return error;
	device->rx_queues = queues;
	device->tx_queues = queues;
	/* A port sees what comes by, as Click's FromDevice(PROMISC true) does. Drivers that cannot are few. */
	rte_eth_promiscuous_enable(port);
	if (mr_timestamp_offset < 0) {
		int bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);
		int offset = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);

		if (bit >= 0 && offset >= 0) {
			mr_timestamp_flag = RTE_BIT64(bit);
			mr_timestamp_offset = offset;
		}
	}
	/* Other drivers stamp with a clock of the device. */
	device->microseconds = mr_timestamp_offset >= 0 && strcmp(device->driver, "net_pcap") == 0;
	device->odd = mr_odd_flags(device->microseconds);
	mr_device_link(port, device);
	return 0;
}

int mr_device_stop(uint16_t port)
{
	int error = rte_eth_dev_stop(port);
	int closed = rte_eth_dev_close(port);

	return error != 0 ? error : closed;
}

void mr_device_link(uint16_t port, struct mr_device *device)
{
	struct rte_eth_link link = { 0 };
	struct rte_ether_addr mac = { 0 };

	device->link_up = rte_eth_link_get_nowait(port, &link) == 0 && link.link_status;
	if (rte_eth_macaddr_get(port, &mac) == 0)
		memcpy(device->mac, mac.addr_bytes, sizeof(device->mac));
	if (rte_eth_dev_get_mtu(port, &device->mtu) != 0)
		device->mtu = 0;
}

int mr_device_stats(uint16_t port, struct mr_stats *out)
{
	struct rte_eth_stats stats;
	int error = rte_eth_stats_get(port, &stats);

	if (error != 0)
		return error;
	*out = (struct mr_stats){
		.rx_packets = stats.ipackets, .rx_bytes = stats.ibytes,
		.tx_packets = stats.opackets, .tx_bytes = stats.obytes,
		.missed = stats.imissed, .no_buffer = stats.rx_nombuf,
		.rx_errors = stats.ierrors, .tx_errors = stats.oerrors,
	};
	return 0;
}
