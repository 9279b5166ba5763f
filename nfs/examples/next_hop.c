/* Sends frames to one next hop: sets their destination address, and drops those that are too short. */
#include "millrace.h"
#include <stdio.h>
#include <string.h>

static int start(millrace_link *link, void *user)
{
    unsigned char *mac = user;
    if (sscanf(millrace_config(link, NULL), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx", &mac[0], &mac[1], &mac[2], &mac[3],
               &mac[4], &mac[5]) != 6)
        return millrace_fail(link, "config: that is no Ethernet address: write 02:00:00:00:00:01");
    return 0;
}

static void batch(millrace_link *link, millrace_packet *packets, size_t count, void *user)
{
    for (size_t i = 0; i < count; i++) {
        if (packets[i].length < 6) {
            millrace_drop(link, &packets[i], 1, 1);
            continue;
        }
        memcpy(packets[i].data, user, 6);
        millrace_pass(link, &packets[i], 1);
        millrace_count(link, 0, 1);
    }
}

int main(void)
{
    unsigned char mac[6];
    const millrace_callbacks callbacks = { .size = sizeof callbacks, .start = start, .batch = batch };
    millrace_options *options = millrace_options_new("next-hop");
    millrace_options_reason(options, "too-short");
    millrace_options_counter(options, "sent");
    int outcome = millrace_run(options, &callbacks, mac);
    if (outcome)
        fprintf(stderr, "next-hop: %s\n", millrace_error());
    millrace_options_free(options);
    return outcome != 0;
}
