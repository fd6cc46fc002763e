/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/*
 * Sources are numbered from 1, so that a file whose registration failed, and whose number is therefore 0, is noticed.
 * Files register from constructors, so nothing here needs initialization.
 */
struct source {
	unsigned registrations; /* 0: free */
	char name[LOG_SOURCE_NAME_SIZE];
};

static struct source *sources;
static size_t num_sources;
static pthread_mutex_t sources_lock = PTHREAD_MUTEX_INITIALIZER; /* guards both */

static struct source *find_name(const char *name)
{
	for (size_t i = 0; i < num_sources; i++) {
		if (sources[i].registrations > 0 && strcmp(sources[i].name, name) == 0)
			return &sources[i];
	}
	return NULL;
}

static struct source *find_free(void)
{
	for (size_t i = 0; i < num_sources; i++) {
		if (sources[i].registrations == 0)
			return &sources[i];
	}
	struct source *grown = realloc(sources, (num_sources + 1) * sizeof(*sources));
	if (grown == NULL)
		return NULL;
	sources = grown;
	memset(&sources[num_sources], 0, sizeof(*sources));
	return &sources[num_sources++];
}

static struct source *find_or_add(const char *name)
{
	struct source *source = find_name(name);
	if (source == NULL && (source = find_free()) != NULL)
		strcpy(source->name, name);
	return source;
}

doca_error_t doca_log_register_source(const char *source_name, int *source)
{
	if (source_name == NULL || source == NULL || *source_name == '\0')
		return DOCA_ERROR_INVALID_VALUE;
	char name[LOG_SOURCE_NAME_SIZE];
	snprintf(name, sizeof(name), "%s", source_name);
	pthread_mutex_lock(&sources_lock);
	struct source *found = find_or_add(name);
	if (found != NULL) {
		found->registrations++;
		*source = (int)(found - sources) + 1;
	}
	pthread_mutex_unlock(&sources_lock);
	return found == NULL ? DOCA_ERROR_NO_MEMORY : DOCA_SUCCESS;
}

static struct source *find_number(int source)
{
	if (source < 1 || (size_t)source > num_sources || sources[source - 1].registrations == 0)
		return NULL;
	return &sources[source - 1];
}

doca_error_t doca_log_unregister_source(int source)
{
	pthread_mutex_lock(&sources_lock);
	struct source *found = find_number(source);
	if (found != NULL)
		found->registrations--;
	pthread_mutex_unlock(&sources_lock);
	return found == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

bool log_source_name(int source, char name[LOG_SOURCE_NAME_SIZE])
{
	pthread_mutex_lock(&sources_lock);
	struct source *found = find_number(source);
	if (found != NULL)
		strcpy(name, found->name);
	pthread_mutex_unlock(&sources_lock);
	return found != NULL;
}
