/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_DEVICE_H
#define EXAMPLES_DEVICE_H

#include <doca_dev.h>

/* Opens the device with this PCI address ("03:00.0"). NOT_FOUND. */
doca_error_t device_open(const char *pci_addr, struct doca_dev **dev);

/* Opens the DPU device's representor of the host's function with this PCI address. NOT_FOUND. */
doca_error_t representor_open(struct doca_dev *dev, const char *pci_addr, struct doca_dev_rep **rep);

#endif
