# How tests are built and registered. One GoogleTest program a layer (target test_<name>), every case of it a ctest
# test of its own (under a sanitizer, every suite); small C programs as fixtures. `unit_tests` builds all of them: the sanitizer presets build only that.
include(GoogleTest)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)

set(FAIRLEAD_TEST_DIR ${PROJECT_BINARY_DIR}/tests)
set(FAIRLEAD_FIXTURE_DIR ${PROJECT_BINARY_DIR}/fixtures)
set(FAIRLEAD_SHARED_DIR ${PROJECT_SOURCE_DIR}/../shared)   # test data that may be missing: such tests skip

add_custom_target(fixtures)
add_custom_target(unit_tests DEPENDS fixtures)

# fairlead_fixture(name source… [LINKS library…]): a helper program for tests, FAIRLEAD_FIXTURE_DIR/<name> at run time.
# Never sanitized: fixtures misbehave on purpose, and are spawned with unusual environments.
function(fairlead_fixture name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  add_executable(fixture_${name} ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(fixture_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${FAIRLEAD_FIXTURE_DIR})
  target_link_libraries(fixture_${name} PRIVATE ${ARG_LINKS})
  if(FAIRLEAD_SANITIZE)
    target_compile_options(fixture_${name} PRIVATE -fno-sanitize=all)
    target_link_options(fixture_${name} PRIVATE -fno-sanitize=all)
  endif()
  add_dependencies(fixtures fixture_${name})
endfunction()

# fairlead_test(name SOURCES … USES layer… [LINKS library…] [SERIAL] [TIMEOUT seconds] [LABEL label])
#   USES     layers by their short names; the headers of src/ are in reach (white-box tests).
#   SERIAL   no other test beside its cases: for those that count descriptors, memory or time.
#   TIMEOUT  in seconds, for one case (default 180); under a sanitizer, for a suite, five times that.
#   LABEL    instead of `unit`. (One only: discovery cannot pass lists.)
# Defines FAIRLEAD_SHARED_DIR, FAIRLEAD_FIXTURE_DIR and FAIRLEAD_SOURCE_DIR as string literals.
function(fairlead_test name)
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT;LABEL" "SOURCES;USES;LINKS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fairlead_test(${name}): what is ${ARG_UNPARSED_ARGUMENTS}?")
  endif()
  set(target test_${name})
  list(TRANSFORM ARG_USES PREPEND fairlead_)
  add_executable(${target} ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${FAIRLEAD_TEST_DIR})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE ${ARG_USES} ${ARG_LINKS} GTest::gtest_main Threads::Threads)
  target_compile_definitions(${target} PRIVATE
    FAIRLEAD_SHARED_DIR="${FAIRLEAD_SHARED_DIR}"
    FAIRLEAD_FIXTURE_DIR="${FAIRLEAD_FIXTURE_DIR}"
    FAIRLEAD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # What is tested is optimized, the tests themselves need not be: they are half of all there is to compile. (g++ wants
  # sibling calls for coroutines that resume each other.)
  target_compile_options(${target} PRIVATE $<IF:$<CXX_COMPILER_ID:Clang>,-O0,-O1$<SEMICOLON>-foptimize-sibling-calls>)
  # Headers cost more than the tests in them: several sources are compiled as one. (g++ then takes their anonymous
  # namespaces for those of a header, and warns of what is made of them.)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  add_dependencies(${target} fixtures)
  add_dependencies(unit_tests ${target})

  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 180)
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  set(serial FALSE)
  if(ARG_SERIAL)
    set(serial TRUE)
  endif()
  if(FAIRLEAD_SANITIZE)
    math(EXPR timeout "5 * ${ARG_TIMEOUT}")
    fairlead_discover_suites(${name} ${FAIRLEAD_TEST_DIR}/${target} ${ARG_LABEL} ${timeout} ${serial})
  else()
    gtest_discover_tests(${target}
      TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${serial})
  endif()
endfunction()

# Makes a ctest test of every suite of a program. To start a sanitized program takes longer than most cases do, so those of
# a suite share a process. (A case that is skipped is seen in the other builds, where it is a test of its own.)
function(fairlead_discover_suites name program label timeout serial)
  set(reader ${CMAKE_CURRENT_BINARY_DIR}/test_${name}_suites.cmake)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/suites.cmake.in ${reader} @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${reader})
endfunction()
