/* DPDK's environment: started once, its log kept, threads made known to it. */

#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

/* The newest messages, for the error that they explain. Drivers log from control calls only. */
static struct {
	pthread_mutex_t lock;
	char text[4096];
	size_t used;
} mr_log = { .lock = PTHREAD_MUTEX_INITIALIZER };

static ssize_t mr_log_write(void *cookie, const char *text, size_t bytes)
{
	size_t whole = bytes;

	(void)cookie;
	pthread_mutex_lock(&mr_log.lock);
	if (bytes > sizeof(mr_log.text)) {
		text += bytes - sizeof(mr_log.text);
		bytes = sizeof(mr_log.text);
	}
	if (mr_log.used + bytes > sizeof(mr_log.text)) {
		size_t gone = mr_log.used + bytes - sizeof(mr_log.text);

		memmove(mr_log.text, mr_log.text + gone, mr_log.used - gone);
		mr_log.used -= gone;
	}
	memcpy(mr_log.text + mr_log.used, text, bytes);
	mr_log.used += bytes;
	pthread_mutex_unlock(&mr_log.lock);
	return whole;
}

/* Copies what was logged since the last call and forgets it; returns its length. */
size_t mr_log_take(char *out, size_t bytes)
{
	size_t taken;

	pthread_mutex_lock(&mr_log.lock);
	taken = mr_log.used < bytes ? mr_log.used : bytes;
	memcpy(out, mr_log.text + mr_log.used - taken, taken);
	mr_log.used = 0;
	pthread_mutex_unlock(&mr_log.lock);
	return taken;
}

static pthread_key_t mr_thread_key;
static bool mr_started;

static void mr_thread_end(void *known)
{
	(void)known;
	rte_thread_unregister();
}

int mr_eal_init(int argc, char **argv)
{
	static const cookie_io_functions_t functions = { .write = mr_log_write };
	FILE *stream = fopencookie(NULL, "w", functions);

	if (stream != NULL) {
		setvbuf(stream, NULL, _IONBF, 0);
		rte_openlog_stream(stream);
	}
	if (pthread_key_create(&mr_thread_key, mr_thread_end) != 0)
		return -EAGAIN;
	if (rte_eal_init(argc, argv) < 0)
		return rte_errno != 0 ? -rte_errno : -EIO;
	mr_started = true;
	return 0;
}

/* Makes the calling thread known, so that it has a cache of free packets. Once per thread; cheap after
 * that. A thread that cannot be registered (there are too many) works without a cache. */
void mr_thread(void)
{
	static __thread bool known;

	if (likely(known))
		return;
	known = true;
	if (mr_started && rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0)
		pthread_setspecific(mr_thread_key, &known);
}
