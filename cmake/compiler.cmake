# Compiler settings for everything we build: warnings are errors, ccache and mold where they are there.
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
  # g++ 12 reports moved-from and coroutine-frame members as maybe uninitialized: false alarms.
  add_compile_options(-Wno-maybe-uninitialized)
  # Nobody replaces our functions at run time, so calls between them may be inlined in position-independent code too.
  add_compile_options(-fno-semantic-interposition)
endif()

if(FAIRLEAD_SANITIZE)
  add_compile_options(-fsanitize=${FAIRLEAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(FAIRLEAD_SANITIZE MATCHES undefined)
    # The vptr check opens a pipe to look at memory, and where a test has left it no descriptors it sees errors everywhere.
    add_compile_options(-fno-sanitize=vptr)
  endif()
  add_link_options(-fsanitize=${FAIRLEAD_SANITIZE})
endif()

# Half of a source's time goes into its headers. (Names of anonymous namespaces must then differ within a layer.)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
option(FAIRLEAD_JOIN_SOURCES "compile several sources as one: sooner from nothing, later after a change")
if(FAIRLEAD_JOIN_SOURCES)
  set(CMAKE_UNITY_BUILD ON)
  # g++ takes the anonymous namespaces of joined sources for those of a header, and warns of what is made of them.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  # Of sources compiled so, addr2line gets the first one's name wrong in DWARF 5.
  add_compile_options($<$<CXX_COMPILER_ID:Clang>:-fdebug-default-version=4>)
endif()
