# Compiler settings for all targets: warnings are errors; ccache and mold are used if they are installed.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
                    "$<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Wold-style-cast>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports moved-from members and members of coroutine frames as maybe uninitialized. These are false positives.
  add_compile_options(-Wno-maybe-uninitialized)
  # Fairlead's functions are never interposed at run time, so g++ may inline calls between them in position-independent
  # code, too.
  add_compile_options(-fno-semantic-interposition)
endif()

if(FAIRLEAD_SANITIZE)
  add_compile_options(-fsanitize=${FAIRLEAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(FAIRLEAD_SANITIZE MATCHES undefined)
    # The vptr check opens a pipe to probe memory. In a test that has used up all descriptors, it reports false errors.
    add_compile_options(-fno-sanitize=vptr)
  endif()
  add_link_options(-fsanitize=${FAIRLEAD_SANITIZE})
endif()

# Half of the compile time of a source file is spent on its headers, so a unity build is faster. It requires that names in
# anonymous namespaces differ within a layer.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
option(FAIRLEAD_JOIN_SOURCES "Compile several source files as one (unity build): faster full builds, slower incremental builds")
if(FAIRLEAD_JOIN_SOURCES)
  set(CMAKE_UNITY_BUILD ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ limits inlining by the growth of a translation unit (40 % by default), so the set of inlined functions depended
    # on which source files are compiled together: a call through the gateway cost 4 % more instructions after files were
    # renamed.
    add_compile_options(--param=inline-unit-growth=80)
  endif()
  # In a unity build, g++ treats the anonymous namespaces of source files as those of a header and warns about types that
  # use them.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  # In a unity build with DWARF 5, addr2line reports a wrong name for the first source file.
  add_compile_options($<$<CXX_COMPILER_ID:Clang>:-fdebug-default-version=4>)
endif()
