// The table of routes of the admin API. Private to the layer.
#pragma once

#include "admin/route.hpp"

namespace fairlead::admin {

RouteTable admin_routes();

}  // namespace fairlead::admin
