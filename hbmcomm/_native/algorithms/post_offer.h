/* Posting a rank's offer: how receivers get what it sends. */
#ifndef HBMCOMM_POST_OFFER_H
#define HBMCOMM_POST_OFFER_H

#include "comm/comm.h"

int hbm_post_offer(hbm_operation *o);

#endif
