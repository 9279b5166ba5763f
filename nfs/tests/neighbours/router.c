/* Routes IPv4 between the networks that its interfaces are on, with next hops that the platform finds out. */
#include "millrace.h"
#include <stdio.h>
#include <string.h>

#define MOST 64

struct waiting {
    millrace_packet packet;
    uint32_t interface;
    uint8_t next[4];
};

static struct waiting waiting[MOST];
static size_t count;
static uint64_t seen;

/* The interface on whose network an address is. */
static int interface_of(millrace_link *link, const uint8_t next[4])
{
    for (int at = 0; at < millrace_interfaces(link); at++) {
        uint8_t own[16], mac[6];
        uint32_t bits;
        int addresses = millrace_l3_interface(link, (uint32_t)at, mac);
        for (int number = 0; number < addresses; number++) {
            if (millrace_l3_interface_address(link, (uint32_t)at, (uint32_t)number, own, &bits) == 4 && bits == 24
                && memcmp(own, next, 3) == 0)
                return at;
        }
    }
    return -1;
}

static void leave(millrace_link *link, millrace_packet *packet, uint32_t interface, const uint8_t next[4])
{
    uint8_t to[6], own[6];
    switch (millrace_neighbour(link, interface, 4, next, to)) {
    case MILLRACE_NEIGHBOUR_KNOWN:
        millrace_l3_interface(link, interface, own);
        memcpy(packet->data, to, 6);
        memcpy(packet->data + 6, own, 6);
        millrace_send(link, packet, 1, interface);
        millrace_count(link, 0, 1);
        return;
    case MILLRACE_NEIGHBOUR_RESOLVING:
        if (count < MOST && millrace_can_hold(link) && millrace_hold(link, packet) == 0) {
            waiting[count].packet = *packet;
            waiting[count].interface = interface;
            memcpy(waiting[count++].next, next, 4);
            return;
        }
    }
    millrace_drop(link, packet, 1, 1);
}

static void idle(millrace_link *link, void *user)
{
    size_t before = count;
    (void)user;
    if (seen == millrace_neighbour_changes(link))
        return;
    seen = millrace_neighbour_changes(link);
    struct waiting old[MOST];
    memcpy(old, waiting, sizeof old);
    count = 0;
    for (size_t at = 0; at < before; at++) {
        millrace_release(link, &old[at].packet);
        leave(link, &old[at].packet, old[at].interface, old[at].next);
    }
}

static void batch(millrace_link *link, millrace_packet *packets, size_t many, void *user)
{
    idle(link, user);
    for (size_t at = 0; at < many; at++) {
        uint8_t next[4];
        int interface;
        if (packets[at].length < 34 || packets[at].data[12] != 8 || packets[at].data[13] != 0) {
            millrace_drop(link, &packets[at], 1, 2);
            continue;
        }
        memcpy(next, packets[at].data + 30, 4);
        interface = interface_of(link, next);
        if (interface < 0 || interface == packets[at].interface)
            millrace_drop(link, &packets[at], 1, 2);
        else
            leave(link, &packets[at], (uint32_t)interface, next);
    }
}

static int start(millrace_link *link, void *user)
{
    uint8_t address[16] = { 10, 0, 0, 9 }, mac[6];
    (void)user;
    if (millrace_l3_interface(link, 0, mac) != 2 || millrace_l3_interface(link, 9, mac) != MILLRACE_ERROR_ARGUMENT
        || millrace_l3_interface_address(link, 0, 1, address, NULL) != 6 || address[0] != 0xfd
        || millrace_l3_interface_address(link, 0, 2, address, NULL) != MILLRACE_ERROR_ARGUMENT
        || millrace_neighbour(link, 0, 5, address, mac) != MILLRACE_ERROR_ARGUMENT
        || millrace_neighbour(link, 0, 4, NULL, mac) != MILLRACE_ERROR_ARGUMENT
        || millrace_neighbour(link, 0, 4, address, NULL) != MILLRACE_ERROR_ARGUMENT
        || millrace_neighbour(link, 9, 4, address, mac) != MILLRACE_NEIGHBOUR_UNREACHABLE)
        return millrace_fail(link, millrace_error());
    return 0;
}

int main(void)
{
    const millrace_callbacks callbacks = { .size = sizeof callbacks, .start = start, .batch = batch, .idle = idle };
    millrace_options *options = millrace_options_new("router-c");
    millrace_options_reason(options, "no-neighbour");
    millrace_options_reason(options, "not-routed");
    millrace_options_counter(options, "forwarded");
    int outcome = millrace_run(options, &callbacks, NULL);
    if (outcome)
        fprintf(stderr, "router: %s\n", millrace_error());
    millrace_options_free(options);
    return outcome != 0;
}
