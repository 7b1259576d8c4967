/* Forks of this process, for whatever must not work in a child. */
#ifndef HBMCOMM_FORK_H
#define HBMCOMM_FORK_H

/* How many forks lie between the process that made the first call and this one: a number that was
   remembered in a parent differs from what its child gets. */
unsigned hbm_forks(void);

#endif
