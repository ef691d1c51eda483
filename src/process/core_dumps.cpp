#include "process/core_dumps.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>

namespace fairlead {

void disable_core_dumps() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) == 0) {
    limit.rlim_cur = 1;
    limit.rlim_max = std::max<rlim_t>(limit.rlim_max, 1);  // raising it needs CAP_SYS_RESOURCE
    if (::setrlimit(RLIMIT_CORE, &limit) == 0) return;
  }
  static_cast<void>(::prctl(PR_SET_DUMPABLE, 0));
}

}  // namespace fairlead
