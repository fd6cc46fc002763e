/* SPDX-License-Identifier: Apache-2.0 */
/* Notification completions: code of the DPA activates a thread, and delivers nothing. */
#include <stdlib.h>

#include "dpa.h"
#include "kernel.h"
#include "soft_dpa.h"
#include "thread.h"

struct doca_dpa_notification_completion {
	struct soft_object object; /* from creation on */
	struct doca_dpa *dpa;
	struct doca_dpa_thread *thread;
	bool started; /* under the lock */
};

doca_error_t soft_doca_dpa_notification_completion_create(struct doca_dpa *dpa, struct doca_dpa_thread *dpa_thread,
							  struct doca_dpa_notification_completion **notify_comp)
{
	if (dpa == NULL || dpa_thread == NULL || notify_comp == NULL || dpa_thread->dpa != dpa)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_dpa_notification_completion *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	created->dpa = dpa;
	created->thread = dpa_thread;
	soft_dpa_use(dpa);
	soft_thread_use(dpa_thread);
	soft_dpa_lock();
	soft_object_add(&created->object, SOFT_OBJECT_NOTIFICATION, created);
	soft_dpa_unlock();
	*notify_comp = created;
	return DOCA_SUCCESS;
}

/* Stops it too. */
doca_error_t soft_doca_dpa_notification_completion_destroy(struct doca_dpa_notification_completion *notify_comp)
{
	if (notify_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	soft_dpa_lock();
	soft_object_remove(&notify_comp->object);
	soft_dpa_unlock();
	soft_thread_unuse(notify_comp->thread);
	soft_dpa_unuse(notify_comp->dpa);
	free(notify_comp);
	return DOCA_SUCCESS;
}

static bool set_started(struct doca_dpa_notification_completion *notification, bool started)
{
	soft_dpa_lock();
	bool changed = notification->started != started;
	notification->started = started;
	soft_dpa_unlock();
	return changed;
}

doca_error_t soft_doca_dpa_notification_completion_start(struct doca_dpa_notification_completion *notify_comp)
{
	if (notify_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!soft_dpa_is_started(notify_comp->dpa) || !soft_thread_is_started(notify_comp->thread))
		return DOCA_ERROR_BAD_STATE;
	return set_started(notify_comp, true) ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t soft_doca_dpa_notification_completion_stop(struct doca_dpa_notification_completion *notify_comp)
{
	if (notify_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return set_started(notify_comp, false) ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t soft_doca_dpa_notification_completion_get_thread(struct doca_dpa_notification_completion *notify_comp,
							      struct doca_dpa_thread **dpa_thread)
{
	if (notify_comp == NULL || dpa_thread == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*dpa_thread = notify_comp->thread;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_notification_completion_get_dpa_handle(struct doca_dpa_notification_completion *notify_comp,
								  doca_dpa_dev_notification_completion_t *handle)
{
	if (notify_comp == NULL || handle == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	soft_dpa_lock();
	bool started = notify_comp->started;
	soft_dpa_unlock();
	if (!started)
		return DOCA_ERROR_BAD_STATE;
	*handle = notify_comp->object.handle;
	return DOCA_SUCCESS;
}

/* Remote procedure calls may notify, too. */
void soft_doca_dpa_dev_thread_notify(doca_dpa_dev_notification_completion_t comp_handle)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_thread_notify");
	if (kernel == NULL)
		return;
	struct doca_dpa_notification_completion *notification = soft_object_find(SOFT_OBJECT_NOTIFICATION, comp_handle);
	if (notification != NULL && notification->started && notification->dpa == kernel->dpa)
		soft_thread_activate(notification->thread);
	else
		soft_kernel_error(kernel, "doca_dpa_dev_thread_notify with the handle of no started notification "
					  "completion of this DPA");
	soft_kernel_leave(kernel);
}
