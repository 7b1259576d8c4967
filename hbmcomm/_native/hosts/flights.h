/* Messages between hosts. Functions return a status. */
#ifndef HBMCOMM_FLIGHTS_H
#define HBMCOMM_FLIGHTS_H

#include "hosts/state.h"

/* The flight of the current slice, without messages yet. */
hbm_flight *hbm_new_flight(hbm_hosts *h);

/* Adds a message to or from a rank. */
int hbm_send_to(hbm_hosts *h, hbm_flight *f, int rank, uintptr_t from, uint64_t bytes);
int hbm_receive_from(hbm_hosts *h, hbm_flight *f, int rank, uintptr_t to, uint64_t bytes);

/* Advances all flights; sets `moved` where something has come or gone. */
int hbm_advance_flights(hbm_hosts *h);
int hbm_has_landed(const hbm_hosts *h, uint64_t slice);

/* Whether news have come that another thread has not read: a rank may be lost. MPICH crashes where
   it sends to a process that is gone. */
int hbm_has_news(const hbm_hosts *h);

/* The wire has failed with a code. */
int hbm_wire_fails(hbm_hosts *h, int code);

/* Nothing waits for messages any more. Returns whether they may still touch memory. */
int hbm_cancel_flights(hbm_hosts *h);

#endif
