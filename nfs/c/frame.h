/* Fields of frames, and lines of a configuration, for the NFs in this folder.
 *
 * Packet memory is shared: each field is read once, by a copy, and the copy is judged and used. */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ETHERNET_BYTES = 14, IPV4 = 0x0800, ARP = 0x0806, IPV6 = 0x86dd, ICMP = 1, TCP = 6, UDP = 17 };

static inline uint16_t read16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t read32(const uint8_t *at)
{
    return (uint32_t)read16(at) << 16 | read16(at + 2);
}

/* What an IPv4 packet says. */
struct ipv4 {
    uint32_t from, to;
    uint16_t from_port, to_port; /* of TCP and UDP; 0 for others and for fragments */
    uint8_t protocol;
    int is_fragment;
    size_t payload, end; /* of TCP and UDP: where the payload begins and ends in the frame */
};

/* Reads the IPv4 packet of an Ethernet frame: 1, 0 when it is none, -1 when its headers are wrong. */
static inline int read_ipv4(const uint8_t *data, size_t length, struct ipv4 *ip)
{
    uint8_t head[60], transport[20];
    if (length < ETHERNET_BYTES || read16(data + 12) != IPV4)
        return 0;
    length -= ETHERNET_BYTES;
    data += ETHERNET_BYTES;
    if (length < 20)
        return -1;
    memcpy(head, data, 20);
    size_t bytes = (head[0] & 15) * 4u, total = read16(head + 2);
    if (head[0] >> 4 != 4 || bytes < 20 || total < bytes || total > length)
        return -1;
    memset(ip, 0, sizeof *ip);
    ip->protocol = head[9];
    ip->from = read32(head + 12);
    ip->to = read32(head + 16);
    ip->is_fragment = (read16(head + 6) & 0x3fff) != 0;
    ip->payload = ETHERNET_BYTES + bytes;
    ip->end = ETHERNET_BYTES + total;
    if (ip->is_fragment || (ip->protocol != TCP && ip->protocol != UDP))
        return 1;
    size_t least = ip->protocol == TCP ? 20 : 8;
    if (total < bytes + least)
        return -1;
    memcpy(transport, data + bytes, least);
    size_t own = ip->protocol == TCP ? (transport[12] >> 4) * 4u : 8;
    if (own < least || total < bytes + own)
        return -1;
    ip->from_port = read16(transport);
    ip->to_port = read16(transport + 2);
    ip->payload += own;
    return 1;
}

/* The next line of a text, without what ends it, copied to `line`; NULL at the end. Lines that are empty or begin
 * with # are passed over; what is longer than `size` is cut off. `number` counts lines. */
static inline char *next_line(const char **text, char *line, size_t size, int *number)
{
    while (**text) {
        size_t bytes = strcspn(*text, "\n"), kept = bytes < size ? bytes : size - 1;
        memcpy(line, *text, kept);
        line[kept] = 0;
        *text += bytes + ((*text)[bytes] != 0);
        ++*number;
        if (line[0] && line[0] != '#')
            return line;
    }
    return NULL;
}

#endif
