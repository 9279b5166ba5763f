/* What the shim offers to Rust. It works by burst; descriptors are filled and read here.
 *
 * Invariants: a packet that Rust holds is an mbuf with a reference count of 1 that is no part of a chain
 * and has no offload flag (or one such mbuf per segment: descriptors say which follows, and mbufs are linked
 * only while a driver has them); `handle` is its address and `buf` its buf_addr. A handle is used only when
 * it is a cache line among the pool's headers that begins with that buf. This tells stale handles from live
 * ones; it does not withstand an attack, so that a handle is never taken out of memory that others write.
 */
#ifndef MILLRACE_SHIM_H
#define MILLRACE_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Mirrors shm::Packet; LAYOUT_VERSION 1. */
struct mr_packet {
	uint64_t buf;
	uint64_t handle;
	uint16_t data, mac, net, trans;
	uint32_t len, total;
	uint8_t anno[48];
	uint64_t timestamp_ns;
	uint32_t flow_hash;
	uint16_t origin, flags;
	uint64_t next;
	uint16_t segments;
	uint8_t packet_type, reserved0;
	uint32_t slot;
	uint32_t generation;
	uint16_t version, region;
	uint64_t reserved1;
} __attribute__((aligned(64)));

#define MR_META_BYTES 128
#define MR_BUF_BYTES 2240
#define MR_SLOT_BYTES (MR_META_BYTES + MR_BUF_BYTES)
#define MR_HEADROOM 128
#define MR_NO_HEADER UINT16_MAX
#define MR_NO_PORT UINT16_MAX
#define MR_LAYOUT_VERSION 1
#define MR_PARTIAL_CHECKSUM 1
#define MR_GSO 2
#define MR_HOST 0
#define MR_BROADCAST 1
#define MR_MULTICAST 2
#define MR_MAX_BURST 256
#define MR_MAX_REGIONS 256
#define MR_FOREIGN_STRIDE 64

_Static_assert(sizeof(struct mr_packet) == MR_META_BYTES, "layout");
_Static_assert(offsetof(struct mr_packet, data) == 16, "layout");
_Static_assert(offsetof(struct mr_packet, len) == 24, "layout");
_Static_assert(offsetof(struct mr_packet, anno) == 32, "layout");
_Static_assert(offsetof(struct mr_packet, timestamp_ns) == 80, "layout");
_Static_assert(offsetof(struct mr_packet, flow_hash) == 88, "layout");
_Static_assert(offsetof(struct mr_packet, flags) == 94, "layout");
_Static_assert(offsetof(struct mr_packet, next) == 96, "layout");
_Static_assert(offsetof(struct mr_packet, packet_type) == 106, "layout");
_Static_assert(offsetof(struct mr_packet, slot) == 108, "layout");
_Static_assert(offsetof(struct mr_packet, region) == 118, "layout");

struct rte_mempool;

/* A pool of packets. `base` is where its first slot's metadata block lies. */
struct mr_pool {
	struct rte_mempool *mempool;
	uint64_t base;		/* first metadata block */
	uint64_t first;		/* first buffer */
	uint64_t span;		/* from the first to the last buffer, in bytes */
	uint64_t slots_per_byte;	/* in units of 2^-64 */
	uint64_t chains;	/* descriptor of the first slot where it is a further segment */
	uint64_t chains_stride;	/* to the next slot's */
	uint64_t headers;	/* lowest address of an mbuf header */
	uint64_t headers_span;	/* to the highest */
	uint32_t capacity;
	uint16_t region;
	bool external;		/* data lies in a region of ours, one slot every MR_SLOT_BYTES */
};

/* What a receive queue needs at each burst. */
struct mr_queue {
	struct mr_pool *pool;
	uint64_t odd;		/* flags of an mbuf for which a packet takes the slow path */
	uint16_t port, queue;
	uint16_t origin;
	bool microseconds;	/* the driver stamps frames, in microseconds since the epoch */
	bool prefetch;		/* a device wrote the frames, not a core: they are not in its caches */
};

/* What a burst did beyond its return value; the caller hands it over as zeros. */
struct mr_burst {
	uint64_t bytes;
	uint32_t bad;		/* descriptors that spoke of no packet of a pool */
	uint32_t foreign;	/* received packets dropped: outside the pool, or without room for a removed tag */
	uint32_t flagged;	/* packets with offload flags set */
	uint32_t odd;		/* received packets that took the slow path */
};

struct mr_device {
	uint64_t odd;		/* see mr_queue */
	uint16_t port;
	uint16_t rx_queues, tx_queues;
	uint16_t max_rx_queues, max_tx_queues;
	uint16_t mtu;
	bool rss;		/* queues get flows by addresses and ports */
	bool multi_segment;	/* can send chains */
	bool microseconds;
	bool link_up;
	uint8_t mac[6];
	char driver[64];
};

struct mr_stats {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
	uint64_t missed, no_buffer, rx_errors, tx_errors;
};

/* eal.c. Functions that can fail return 0 or a negative errno. */
int mr_eal_init(int argc, char **argv);
void mr_thread(void);
size_t mr_log_take(char *out, size_t bytes);

/* pool.c */
int mr_pool_create(const char *name, void *base, void *chains, uint64_t bytes, uint64_t page_bytes,
		   uint32_t slots, uint32_t cache, struct mr_pool *pool);
void mr_pool_number(struct mr_pool *pool, uint16_t region);
uint32_t mr_pool_available(const struct mr_pool *pool);

/* device.c */
int mr_device_attach(const char *bus, const char *name, const char *args, uint16_t *port);
int mr_device_detach(const char *bus, const char *name);
int mr_device_start(uint16_t port, uint16_t queues, uint16_t descriptors, struct mr_pool *pool,
		    struct mr_device *device);
int mr_device_stop(uint16_t port);
void mr_device_link(uint16_t port, struct mr_device *device);
int mr_device_stats(uint16_t port, struct mr_stats *stats);

/* burst.c. No more than MR_MAX_BURST at once. */
uint32_t mr_alloc(struct mr_pool *pool, struct mr_packet *out, uint32_t count);
void mr_free(const struct mr_packet *packets, uint32_t count, const uint16_t *list, uint32_t listed,
	     struct mr_burst *burst);
void mr_share(const struct mr_packet *packets, uint32_t count);
uint32_t mr_receive(const struct mr_queue *queue, struct mr_packet *out, uint32_t count,
		    struct mr_burst *burst);
uint32_t mr_send(uint16_t port, uint16_t queue, const struct mr_packet *packets, uint32_t count,
		 const uint16_t *list, uint32_t listed, struct mr_burst *burst);

#endif
