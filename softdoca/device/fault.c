/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fault.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "error.h"
#include "shown.h"
#include "sizes.h"
#include "soft.h"

enum kind {
	SEED,
	REFUSE,
	FAIL,
	FAIL_MEMCPY,
	DELAY,
	REORDER,
	FLIP,
	DROP,
	DUPLICATE,
	CUT,
	CUT_EVERY,
	MUTE,
	AGAIN_RATE,
	CONNECT,
	DISCONNECT,
	KINDS
};

/* The counters for N of the kinds of rules. Rules of REFUSE have their own. */
enum counter { COMPLETIONS, MEMCPY_TASKS, MEMCPY_COMPLETIONS, COPIES, MESSAGES, CONNECTS, DISCONNECTS, COUNTERS };

struct rule {
	enum kind kind;
	char name[64];
	uint64_t n;
	uint64_t extra; /* a code or microseconds */
	atomic_ullong calls;
};

struct soft_faults {
	atomic_ullong counters[COUNTERS];
	atomic_ullong random;
	atomic_bool muted;
	unsigned num_rules;
	struct rule rules[SOFT_MAX_FAULT_RULES];
};

/* ---- parsing ---- */

struct form {
	const char *name;
	const char *value; /* N: a number, W: a name, C: a code, E: microseconds */
};

static const struct form forms[KINDS] = {
	[SEED] = {"seed", "N"},
	[REFUSE] = {"refuse", "WNC"},
	[FAIL] = {"fail", "NC"},
	[FAIL_MEMCPY] = {"fail_memcpy", "NC"},
	[DELAY] = {"delay", "NE"},
	[REORDER] = {"reorder", "N"},
	[FLIP] = {"flip", "N"},
	[DROP] = {"drop", "N"},
	[DUPLICATE] = {"duplicate", "N"},
	[CUT] = {"cut", "N"},
	[CUT_EVERY] = {"cut_every", "N"},
	[MUTE] = {"mute", "N"},
	[AGAIN_RATE] = {"again", "N"},
	[CONNECT] = {"connect", "N"},
	[DISCONNECT] = {"disconnect", "N"},
};

static bool parse_number(const char *text, uint64_t *number)
{
	char *end;
	if (*text < '0' || *text > '9' || strlen(text) > 18)
		return false;
	*number = strtoull(text, &end, 10);
	return *end == '\0';
}

/* Parses a code without its prefix DOCA_ERROR_. */
static bool parse_code(const char *text, uint64_t *code)
{
	for (int i = DOCA_ERROR_UNKNOWN; i <= DOCA_ERROR_SKIPPED; i++) {
		*code = (uint64_t)i;
		if (strcmp(soft_doca_error_get_name((doca_error_t)i) + strlen("DOCA_ERROR_"), text) == 0)
			return true;
	}
	return false;
}

static bool parse_word(const char *text, struct rule *rule)
{
	return snprintf(rule->name, sizeof(rule->name), "%s", text) < (int)sizeof(rule->name) && *text != '\0';
}

static bool parse_field(char form, const char *text, struct rule *rule)
{
	switch (form) {
	case 'W':
		return parse_word(text, rule);
	case 'C':
		return parse_code(text, &rule->extra);
	case 'E':
		return parse_number(text, &rule->extra);
	default:
		return parse_number(text, &rule->n);
	}
}

static bool parse_value(const char *form, char *value, struct rule *rule)
{
	for (; *form != '\0'; form++) {
		char *end = strchrnul(value, ':');
		bool last = *end == '\0';
		*end = '\0';
		if (!parse_field(*form, value, rule) || last != (form[1] == '\0'))
			return false;
		value = end + 1;
	}
	return true;
}

static bool valid_rule(const struct rule *rule)
{
	if (rule->kind == AGAIN_RATE)
		return rule->n <= 100;
	if (rule->kind == DELAY && rule->extra > SOFT_MAX_FAULT_DELAY_US)
		return false;
	return rule->kind == SEED || rule->n > 0;
}

/* Parses item, and writes zeros into it. */
static bool parse_rule(char *item, struct rule *rule)
{
	char *equals = strchr(item, '=');
	if (equals == NULL)
		return false;
	*equals = '\0';
	for (int kind = 0; kind < KINDS; kind++) {
		if (strcmp(forms[kind].name, item) != 0)
			continue;
		rule->kind = (enum kind)kind;
		return parse_value(forms[kind].value, equals + 1, rule) && valid_rule(rule);
	}
	return false;
}

static doca_error_t parse_rules(char *text, struct soft_faults *faults)
{
	for (char *item = text, *rest; item != NULL; item = rest) {
		rest = strchr(item, ',');
		if (rest != NULL)
			*rest++ = '\0';
		struct shown whole = shown_string(item); /* parsing writes zeros into it */
		if (faults->num_rules == SOFT_MAX_FAULT_RULES || !parse_rule(item, &faults->rules[faults->num_rules])) {
			soft_detail("fault \"%s\" of the software device cannot be understood", whole.text);
			return DOCA_ERROR_INVALID_VALUE;
		}
		struct rule *rule = &faults->rules[faults->num_rules++];
		if (rule->kind == SEED)
			atomic_store(&faults->random, rule->n);
	}
	return DOCA_SUCCESS;
}

doca_error_t soft_parse_faults(const char *text, struct soft_faults **faults)
{
	*faults = NULL;
	if (text == NULL || *text == '\0')
		return DOCA_SUCCESS;
	char *copy = strdup(text);
	struct soft_faults *parsed = calloc(1, sizeof(*parsed));
	doca_error_t result = DOCA_ERROR_NO_MEMORY;
	if (copy != NULL && parsed != NULL)
		result = parse_rules(copy, parsed);
	free(copy);
	if (result == DOCA_SUCCESS)
		*faults = parsed;
	else
		free(parsed);
	return result;
}

void soft_free_faults(struct soft_faults *faults)
{
	free(faults);
}

/* ---- asking ---- */

/* splitmix64 over a shared state: one seed gives one sequence of numbers. */
static uint64_t draw(struct soft_faults *faults, uint64_t below)
{
	uint64_t z = atomic_fetch_add(&faults->random, 0x9e3779b97f4a7c15U) + 0x9e3779b97f4a7c15U;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return below == 0 ? 0 : (z ^ (z >> 31)) % below;
}

static uint64_t count(struct soft_faults *faults, enum counter counter)
{
	return atomic_fetch_add(&faults->counters[counter], 1) + 1;
}

/* Returns the rule of that kind for the nth event; n 0: any. */
static const struct rule *find(const struct soft_faults *faults, enum kind kind, uint64_t n)
{
	for (unsigned i = 0; i < faults->num_rules; i++) {
		if (faults->rules[i].kind == kind && (n == 0 || faults->rules[i].n == n))
			return &faults->rules[i];
	}
	return NULL;
}

bool soft_fault_in_calls(void)
{
	const struct soft_faults *faults = soft_faults();
	return faults != NULL && find(faults, REFUSE, 0) != NULL;
}

doca_error_t soft_fault_call(const char *name)
{
	struct soft_faults *faults = soft_faults();
	doca_error_t result = DOCA_SUCCESS;
	for (unsigned i = 0; faults != NULL && i < faults->num_rules; i++) {
		struct rule *rule = &faults->rules[i];
		bool meant = rule->kind == REFUSE && (strcmp(rule->name, "*") == 0 || strcmp(rule->name, name) == 0);
		if (meant && atomic_fetch_add(&rule->calls, 1) + 1 == rule->n) {
			soft_detail("%s refused by an injected fault", name);
			result = (doca_error_t)rule->extra;
		}
	}
	return result;
}

static doca_error_t next_failure(enum kind kind, enum counter counter)
{
	struct soft_faults *faults = soft_faults();
	const struct rule *rule = faults == NULL ? NULL : find(faults, kind, count(faults, counter));
	if (rule == NULL)
		return DOCA_SUCCESS;
	soft_detail("completion %llu failed by an injected fault", (unsigned long long)rule->n);
	return (doca_error_t)rule->extra;
}

doca_error_t soft_fault_completion(void)
{
	return next_failure(FAIL, COMPLETIONS);
}

doca_error_t soft_fault_memcpy(void)
{
	doca_error_t of_all = soft_fault_completion(), of_memcpy = next_failure(FAIL_MEMCPY, MEMCPY_TASKS);
	return of_all != DOCA_SUCCESS ? of_all : of_memcpy;
}

uint64_t soft_fault_delay(void)
{
	struct soft_faults *faults = soft_faults();
	const struct rule *rule = faults == NULL ? NULL : find(faults, DELAY, count(faults, MEMCPY_COMPLETIONS));
	return rule == NULL ? 0 : rule->extra * 1000;
}

uint32_t soft_fault_order(uint32_t count_of_tasks)
{
	struct soft_faults *faults = soft_faults();
	const struct rule *rule = faults == NULL ? NULL : find(faults, REORDER, 0);
	if (rule == NULL)
		return 0;
	return (uint32_t)draw(faults, rule->n < count_of_tasks ? rule->n : count_of_tasks);
}

enum soft_copy_fault soft_fault_copy(size_t len, size_t *at, size_t *run)
{
	static const enum kind kinds[] = {FLIP, DROP, DUPLICATE};
	struct soft_faults *faults = soft_faults();
	if (faults == NULL || len == 0)
		return SOFT_COPY_WHOLE;
	uint64_t n = count(faults, COPIES);
	for (unsigned i = 0; i < 3; i++) {
		if (find(faults, kinds[i], n) == NULL)
			continue;
		*at = draw(faults, len);
		*run = 1 + draw(faults, len - *at);
		return SOFT_COPY_FLIP + i;
	}
	return SOFT_COPY_WHOLE;
}

enum soft_message_fault soft_fault_message(void)
{
	struct soft_faults *faults = soft_faults();
	if (faults == NULL)
		return SOFT_MESSAGE_WHOLE;
	uint64_t n = count(faults, MESSAGES);
	if (find(faults, MUTE, n) != NULL) {
		soft_detail("muted from control message %llu on by an injected fault", (unsigned long long)n);
		atomic_store(&faults->muted, true);
	}
	const struct rule *every = find(faults, CUT_EVERY, 0);
	if (find(faults, CUT, n) == NULL && (every == NULL || n % every->n != 0))
		return SOFT_MESSAGE_WHOLE;
	soft_detail("connection cut at control message %llu by an injected fault", (unsigned long long)n);
	return SOFT_MESSAGE_CUT;
}

static bool is_due(enum kind kind, enum counter counter)
{
	struct soft_faults *faults = soft_faults();
	return faults != NULL && find(faults, kind, count(faults, counter)) != NULL;
}

bool soft_fault_connect(void)
{
	return is_due(CONNECT, CONNECTS);
}

bool soft_fault_disconnect(void)
{
	return is_due(DISCONNECT, DISCONNECTS);
}

bool soft_fault_muted(void)
{
	const struct soft_faults *faults = soft_faults();
	return faults != NULL && atomic_load(&faults->muted);
}

doca_error_t soft_fault_submit(void)
{
	struct soft_faults *faults = soft_faults();
	const struct rule *rule = faults == NULL ? NULL : find(faults, AGAIN_RATE, 0);
	return rule != NULL && draw(faults, 100) < rule->n ? DOCA_ERROR_AGAIN : DOCA_SUCCESS;
}
