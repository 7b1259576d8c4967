/* The groups of this process by number. */
#pragma once

#include "groups/group.h"

namespace hbmcomm {

/* Gives a group its number. Numbers are not reused. */
void add_group(const c10::intrusive_ptr<Group> &group);

/* A group that ends removes itself. */
void remove_group(int64_t number);

/* Throws where the group does not exist any more. */
c10::intrusive_ptr<Group> find_group(int64_t number);

/* Ends all operations: Python, which explains errors, is about to end. */
void abort_groups();

} // namespace hbmcomm
