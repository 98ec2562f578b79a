/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the kernel's code is in memory is random, to keep it from attackers, and /proc tells root alone.
 * Who may ask for profiles need not be root.
 */
#ifndef SERVE_KERNEL_ADDRESSES_H
#define SERVE_KERNEL_ADDRESSES_H

struct profile;

/*
 * The kernel's code in a profile gets other addresses, which are made of names of functions and how far
 * in them it is: the same code has the same one, in other profiles, too. What has no name loses its own,
 * which was the address. To be called once there are names, before profile__finish. 0 or -ENOMEM.
 */
int kernel_addresses_hide(struct profile *p);

#endif
