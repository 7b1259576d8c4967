/* The groups of this process by number. */
#pragma once

#include "groups/group.h"

namespace hbmcomm {

/* Numbers are not reused. */
int64_t add_group(const c10::intrusive_ptr<Group> &group);
int64_t number_of(const Group &group);

/* Throws where the group does not exist any more. */
c10::intrusive_ptr<Group> find_group(int64_t number);

/* Ends all operations: Python, which explains errors, is about to end. */
void abort_groups();

} // namespace hbmcomm
