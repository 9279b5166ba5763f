/* Passes packets on, and sends a copy of each out of the interface `tap`, with a loop of its own. */
#include "millrace.h"
#include <stdio.h>

int main(void)
{
    millrace_options *options = millrace_options_new("tap");
    int missed = millrace_options_counter(options, "copies-missed");
    millrace_options_makes_packets(options);
    millrace_link *link = millrace_prepare(options);
    millrace_options_free(options);
    int tap, to;
    if (!link || (tap = millrace_interface(link, "tap")) < 0 || (to = millrace_interface(link, "out")) < 0
        || millrace_stop_on_signals(link) || millrace_ready(link)) {
        fprintf(stderr, "tap: %s\n", millrace_error());
        millrace_fail(link, millrace_error());
        millrace_close(link);
        return 1;
    }
    while (!millrace_is_over(link)) {
        millrace_packet packets[MILLRACE_BURST], copy;
        int count = millrace_receive(link, packets, MILLRACE_BURST);
        for (int i = 0; i < count; i++) {
            if (millrace_make(link, &copy) == 0 && millrace_append(link, &copy, packets[i].data, packets[i].length) == 0)
                millrace_send(link, &copy, 1, (uint32_t)tap);
            else
                millrace_count(link, (uint32_t)missed, 1);
        }
        millrace_send(link, packets, (size_t)count, (uint32_t)to);
        if (count == 0)
            millrace_wait(link);
    }
    millrace_close(link);
    return 0;
}
