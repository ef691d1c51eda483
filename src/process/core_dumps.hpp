// Core dumps of this process and of its children.
#pragma once

namespace fairlead {

// Prevents core dumps, also those that the kernel pipes to a program: it ignores the limit 0 for them, but
// not the limit 1 (core(5)), which children inherit. If this process cannot have the limit 1, because its
// hard limit is 0, it becomes undumpable instead (PR_SET_DUMPABLE); its children do not.
void disable_core_dumps() noexcept;

}  // namespace fairlead
