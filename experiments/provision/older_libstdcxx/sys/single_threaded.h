/* In the place of zig's header of this name, which refuses a glibc before 2.32. libstdc++'s headers take
   it where it exists, to count references without atomic instructions while there is one thread; without
   the answer of a newer glibc they always use these. */
#pragma once

static const char __libc_single_threaded = 0;
