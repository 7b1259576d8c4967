/* Forks of this process, for whatever must not work in a child. */
#ifndef HBMCOMM_FORK_H
#define HBMCOMM_FORK_H

/* The number of forks between the process that made the first call and this one. A number that a
   parent remembers differs from the one that its child gets. */
unsigned hbm_forks(void);

#endif
