/* Sends, holds and makes packets, and ends in the middle of its fifth batch without a word. */
#include "millrace.h"
#include <stddef.h>

static volatile int *nowhere = NULL;

static void batch(millrace_link *link, millrace_packet *packets, size_t count, void *user)
{
    int *batches = user;
    millrace_packet made;
    for (size_t i = 0; i < count; i++) {
        if (i % 3 == 0)
            millrace_hold(link, &packets[i]);
        else if (i % 3 == 1)
            millrace_pass(link, &packets[i], 1);
        if (i == count / 2 && ++*batches == 5)
            *nowhere = 1;
        if (millrace_make(link, &made) == 0 && millrace_append(link, &made, packets[0].data, packets[0].length) == 0)
            millrace_send(link, &made, 1, 1);
    }
}

int main(void)
{
    int batches = 0;
    const millrace_callbacks callbacks = { .size = sizeof callbacks, .batch = batch };
    millrace_options *options = millrace_options_new("dies");
    millrace_options_makes_packets(options);
    int outcome = millrace_run(options, &callbacks, &batches);
    millrace_options_free(options);
    return outcome != 0;
}
