# Functions that build and register tests. Each layer has one GoogleTest program (target test_<name>). Each test case is a
# separate ctest test; under a sanitizer, each suite is. Fixtures are small C programs. The target `unit_tests` builds all
# of them; the sanitizer builds use it instead of building everything.
include(GoogleTest)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)

set(FAIRLEAD_TEST_DIR ${PROJECT_BINARY_DIR}/tests)
set(FAIRLEAD_FIXTURE_DIR ${PROJECT_BINARY_DIR}/fixtures)
set(FAIRLEAD_SHARED_DIR ${PROJECT_SOURCE_DIR}/../shared)   # optional test data; tests that need it are skipped if it is missing

add_custom_target(fixtures)
add_custom_target(unit_tests DEPENDS fixtures)

# fairlead_fixture(name source… [LINKS library…]): builds a helper program for tests, FAIRLEAD_FIXTURE_DIR/<name> at run
# time. Fixtures are never sanitized, because they misbehave on purpose and are spawned with unusual environments.
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

# fairlead_test(name SOURCES … USES layer… [LINKS library…] [SERIAL] [SUITES] [TIMEOUT seconds] [LABEL label]): builds and registers
# the test program test_<name>.
#   USES     the short names of the layers to link; tests may include the headers of src/ (white-box tests).
#   SERIAL   no other test runs at the same time; for tests that measure descriptors, memory or time.
#   SUITES   each suite is one ctest test, as under a sanitizer; for tests whose cases share a server.
#   TIMEOUT  the timeout of one case in seconds (default 180); under a sanitizer, a suite has five times that.
#   LABEL    the ctest label (default `unit`). Only one is possible, because test discovery cannot pass lists.
# Defines FAIRLEAD_SHARED_DIR, FAIRLEAD_FIXTURE_DIR and FAIRLEAD_SOURCE_DIR as string literals.
function(fairlead_test name)
  cmake_parse_arguments(ARG "SERIAL;SUITES" "TIMEOUT;LABEL" "SOURCES;USES;LINKS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fairlead_test(${name}): unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
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
  # The tests are half of all code to compile, so they are compiled with little optimization; the layers under test are
  # optimized. g++ needs sibling calls for coroutines that resume each other.
  target_compile_options(${target} PRIVATE $<IF:$<CXX_COMPILER_ID:Clang>,-O0,-Og$<SEMICOLON>-foptimize-sibling-calls>)
  # Headers take longer to compile than the tests that include them, hence the unity build. In a unity build, g++ treats
  # anonymous namespaces of source files as those of a header and warns about types that use them.
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
  if(FAIRLEAD_SANITIZE OR ARG_SUITES)
    math(EXPR timeout "5 * ${ARG_TIMEOUT}")
    fairlead_discover_suites(${name} ${FAIRLEAD_TEST_DIR}/${target} ${ARG_LABEL} ${timeout} ${serial})
  else()
    gtest_discover_tests(${target}
      TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${serial})
  endif()
endfunction()

# Registers one ctest test for each suite of a program. Starting a sanitized program takes longer than most cases, so the
# cases of a suite share a process. Skipped cases are reported only by the other builds, where each case is a test.
function(fairlead_discover_suites name program label timeout serial)
  set(suites_file ${CMAKE_CURRENT_BINARY_DIR}/test_${name}_suites.cmake)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/suites.cmake.in ${suites_file} @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${suites_file})
endfunction()
