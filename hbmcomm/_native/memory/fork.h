/* Detection of forks: some functions must refuse to work in a child. */
#ifndef HBMCOMM_FORK_H
#define HBMCOMM_FORK_H

/* The number of forks between the process that made the first call and this one. It differs between
   a parent and its child. */
unsigned hbm_forks(void);

#endif
