#include "registry/registry.hpp"

namespace fairlead::registry {

Task<Result<std::shared_ptr<Registry>>> Registry::open(Loop&, std::string, RegistryOptions) {
  co_return Error(ErrorKind::validation, "the registry is not available in this build");
}

}  // namespace fairlead::registry
