# Builds libfairlead from the objects of all layers, and installs it with the headers, the program and the files for
# find_package(fairlead) and pkg-config. Linking fairlead::fairlead and using `pkg-config fairlead` are equivalent.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(objects)
foreach(layer IN LISTS FAIRLEAD_LAYERS)
  list(APPEND objects $<TARGET_OBJECTS:${layer}>)
endforeach()

add_library(libfairlead ${objects})     # static; shared with -DBUILD_SHARED_LIBS=ON
add_library(fairlead::fairlead ALIAS libfairlead)
set_target_properties(libfairlead PROPERTIES
  OUTPUT_NAME fairlead EXPORT_NAME fairlead LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(libfairlead PUBLIC cxx_std_23)
target_include_directories(libfairlead PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(BUILD_SHARED_LIBS)
  # The library exports only Fairlead's symbols, not those of libraries compiled into it.
  set(exports ${CMAKE_CURRENT_LIST_DIR}/exports.map)
  target_link_options(libfairlead PRIVATE -Wl,--version-script=${exports})
  set_target_properties(libfairlead PROPERTIES LINK_DEPENDS ${exports})
endif()

# A program that links libfairlead statically must also link the libraries that the layers link. Each of them must
# therefore be listed in fairlead-config.cmake.in and fairlead.pc.in.
set(known_links Threads::Threads OpenSSL::SSL OpenSSL::Crypto yaml SQLite::SQLite3 PostgreSQL::PostgreSQL ZLIB::ZLIB)
foreach(library IN LISTS FAIRLEAD_LINKS)
  if(NOT library IN_LIST known_links)
    message(FATAL_ERROR "a layer links ${library}, which is not listed for users of libfairlead: add it to fairlead-config.cmake.in, fairlead.pc.in and known_links")
  endif()
endforeach()
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(ZLIB REQUIRED)
target_link_libraries(libfairlead PUBLIC Threads::Threads OpenSSL::SSL OpenSSL::Crypto yaml SQLite::SQLite3 PostgreSQL::PostgreSQL ZLIB::ZLIB)

if(FAIRLEAD_SANITIZE)
  return()   # sanitized builds are not installed
endif()

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fairlead)
install(TARGETS libfairlead EXPORT fairlead)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fairlead DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp")
if(TARGET fairlead)
  install(TARGETS fairlead)
  # The manual pages and the completion scripts are written by the program, from the definitions of its commands.
  set(shell_files ${PROJECT_BINARY_DIR}/shell)
  file(MAKE_DIRECTORY ${shell_files}/man)
  add_custom_command(OUTPUT ${shell_files}/written DEPENDS fairlead VERBATIM
    COMMAND fairlead man --directory ${shell_files}/man
    COMMAND sh -c "\"$1\" completion bash >fairlead && \"$1\" completion zsh >_fairlead && \"$1\" completion fish >fairlead.fish" sh $<TARGET_FILE:fairlead>
    COMMAND ${CMAKE_COMMAND} -E touch ${shell_files}/written
    WORKING_DIRECTORY ${shell_files} COMMENT "Writing the manual pages and completion scripts")
  add_custom_target(fairlead-shell-files ALL DEPENDS ${shell_files}/written)
  install(DIRECTORY ${shell_files}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${shell_files}/fairlead DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${shell_files}/_fairlead DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${shell_files}/fairlead.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
# The library embeds the keeper and runs it from memory. The installed file is for systems that forbid this; the variable
# FAIRLEAD_KEEPER selects it.
install(TARGETS fairlead-keeper DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
install(EXPORT fairlead NAMESPACE fairlead:: FILE fairlead-targets.cmake DESTINATION ${cmake_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fairlead-config.cmake.in
  ${PROJECT_BINARY_DIR}/fairlead-config.cmake INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fairlead-config-version.cmake
  COMPATIBILITY SameMinorVersion)   # before 1.0, every minor version may break compatibility
install(FILES ${PROJECT_BINARY_DIR}/fairlead-config.cmake ${PROJECT_BINARY_DIR}/fairlead-config-version.cmake
        DESTINATION ${cmake_dir})

# The prefix is relative to the location of the .pc file, so an installed tree can be moved.
file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" PC_PREFIX "${PC_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/fairlead.pc.in ${PROJECT_BINARY_DIR}/fairlead.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fairlead.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
