/* Counts packets and bytes, and by what protocol they are; passes everything on. */
#include "frame.h"
#include "millrace.h"
#include <stdio.h>

enum { PACKETS, BYTES, IS_IPV4, IS_IPV6, IS_ARP, OTHER, COUNTERS };
static const char *const names[COUNTERS] = { "packets", "bytes", "ipv4", "ipv6", "arp", "other" };

static void batch(millrace_link *link, millrace_packet *packets, size_t count, void *user)
{
    uint64_t counts[COUNTERS] = { 0 };
    (void)user;
    for (size_t i = 0; i < count; i++) {
        uint16_t type = packets[i].length < ETHERNET_BYTES ? 0 : read16(packets[i].data + 12);
        counts[PACKETS]++;
        counts[BYTES] += packets[i].length;
        counts[type == IPV4 ? IS_IPV4 : type == IPV6 ? IS_IPV6 : type == ARP ? IS_ARP : OTHER]++;
    }
    for (unsigned counter = 0; counter < COUNTERS; counter++)
        millrace_count(link, counter, counts[counter]);
    millrace_pass(link, packets, count);
}

int main(void)
{
    const millrace_callbacks callbacks = { .size = sizeof callbacks, .batch = batch };
    millrace_options *options = millrace_options_new("monitor");
    for (unsigned counter = 0; counter < COUNTERS; counter++)
        millrace_options_counter(options, names[counter]);
    int outcome = millrace_run(options, &callbacks, NULL);
    if (outcome)
        fprintf(stderr, "monitor: %s\n", millrace_error());
    millrace_options_free(options);
    return outcome != 0;
}
