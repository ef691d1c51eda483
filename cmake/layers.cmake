# Each layer is a static library that links only the layers below it, so a wrong dependency fails to link.
# The installed library contains all layers (cmake/install.cmake).
set(FAIRLEAD_LAYERS "" CACHE INTERNAL "")   # targets, bottom layer first
set(FAIRLEAD_LINKS "" CACHE INTERNAL "")    # external libraries that the layers link

# fairlead_layer(name SOURCES … USES lower-layer… LINKS library…): defines the layer `name` as target fairlead_<name>.
function(fairlead_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS" ${ARGN})
  add_library(fairlead_${name} STATIC ${ARG_SOURCES})
  target_include_directories(fairlead_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              PRIVATE ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_USES PREPEND fairlead_)
  target_link_libraries(fairlead_${name} PUBLIC ${ARG_USES} PRIVATE ${ARG_LINKS})
  set(FAIRLEAD_LAYERS ${FAIRLEAD_LAYERS} fairlead_${name} CACHE INTERNAL "")
  set(links ${FAIRLEAD_LINKS} ${ARG_LINKS})
  list(REMOVE_DUPLICATES links)
  set(FAIRLEAD_LINKS ${links} CACHE INTERNAL "")
endfunction()
