# The keeper: a separate program, which is built first and embedded in the process layer as bytes. It has its own build
# settings: static, small, and always without sanitizers.
include(CheckCXXSourceCompiles)

function(_fairlead_can_link_static out)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static)
  check_cxx_source_compiles("int main() { return 0; }" FAIRLEAD_STATIC_LINKING)
  set(${out} ${FAIRLEAD_STATIC_LINKING} PARENT_SCOPE)
endfunction()

# fairlead_embed_keeper(target): builds `fairlead-keeper` and embeds it in `target`. Must be called in src/.
function(fairlead_embed_keeper target)
  set(dir ${PROJECT_SOURCE_DIR}/src/process)
  set(program ${CMAKE_CURRENT_BINARY_DIR}/fairlead-keeper)
  set(sources main.cpp serve.cpp requests.cpp launch.cpp restrictions.cpp cgroup.cpp manifest_append.cpp proc.cpp
              reaper.cpp orphans.cpp child_table.cpp)
  list(TRANSFORM sources PREPEND ${dir}/keeper/)
  add_executable(fairlead-keeper ${sources})
  # Without a static libc the keeper is linked dynamically and starts slightly slower.
  _fairlead_can_link_static(static)
  if(NOT static)
    message(WARNING "No static libc: fairlead-keeper will be dynamically linked")
  endif()
  # The properties are set, not appended to, because the options of the directory (sanitizers in particular) must not
  # apply to the keeper.
  set_target_properties(fairlead-keeper PROPERTIES
    COMPILE_OPTIONS "-Os;-g0;-fno-exceptions;-fno-rtti;-fno-threadsafe-statics;-fno-asynchronous-unwind-tables;-fno-stack-protector;-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wold-style-cast;-Werror"
    LINK_OPTIONS "-s;$<$<BOOL:${static}>:-static>"
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
    INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/src
    POSITION_INDEPENDENT_CODE OFF
    CXX_CLANG_TIDY ""
    UNITY_BUILD OFF)
  target_sources(${target} PRIVATE ${dir}/keeper_image.cpp)
  set_source_files_properties(${dir}/keeper_image.cpp TARGET_DIRECTORY ${target} PROPERTIES
    COMPILE_DEFINITIONS "FAIRLEAD_KEEPER_FILE=\"${program}\""
    OBJECT_DEPENDS ${program})
  add_dependencies(${target} fairlead-keeper)
endfunction()
