# libfairlead: the objects of all layers in one library, and everything a user of it needs: headers, the program,
# find_package(fairlead) and pkg-config. Both say the same: link fairlead::fairlead, or `pkg-config fairlead`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(layers ${FAIRLEAD_LAYERS})
list(REMOVE_ITEM layers fairlead_cli)   # the program's own
set(objects)
foreach(layer IN LISTS layers)
  list(APPEND objects $<TARGET_OBJECTS:${layer}>)
endforeach()

add_library(libfairlead ${objects})     # static, or shared with -DBUILD_SHARED_LIBS=ON
add_library(fairlead::fairlead ALIAS libfairlead)
set_target_properties(libfairlead PROPERTIES
  OUTPUT_NAME fairlead EXPORT_NAME fairlead LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(libfairlead PUBLIC cxx_std_23)
target_include_directories(libfairlead PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(BUILD_SHARED_LIBS)
  # Only our own names leave the library; those of the libraries compiled into it do not.
  set(exports ${CMAKE_CURRENT_LIST_DIR}/exports.map)
  target_link_options(libfairlead PRIVATE -Wl,--version-script=${exports})
  set_target_properties(libfairlead PROPERTIES LINK_DEPENDS ${exports})
endif()

# Whatever a layer links, a program that links us statically must link too, so each is named in fairlead-config.cmake.in
# and fairlead.pc.in.
set(known_links Threads::Threads OpenSSL::SSL OpenSSL::Crypto yaml)
foreach(library IN LISTS FAIRLEAD_LINKS)
  if(NOT library IN_LIST known_links)
    message(FATAL_ERROR "${library} is linked by a layer: name it in fairlead-config.cmake.in and fairlead.pc.in")
  endif()
endforeach()
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
target_link_libraries(libfairlead PUBLIC Threads::Threads OpenSSL::SSL OpenSSL::Crypto yaml)

if(FAIRLEAD_SANITIZE)
  return()   # not for anybody's machine
endif()

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fairlead)
install(TARGETS libfairlead EXPORT fairlead)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fairlead DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp")
if(TARGET fairlead)
  install(TARGETS fairlead)
endif()
# The library carries the keeper and runs it from memory; this file is for systems that refuse that (FAIRLEAD_KEEPER).
install(TARGETS fairlead-keeper DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
install(EXPORT fairlead NAMESPACE fairlead:: FILE fairlead-targets.cmake DESTINATION ${cmake_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fairlead-config.cmake.in
  ${PROJECT_BINARY_DIR}/fairlead-config.cmake INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fairlead-config-version.cmake
  COMPATIBILITY SameMinorVersion)   # before 1.0 every minor version may break
install(FILES ${PROJECT_BINARY_DIR}/fairlead-config.cmake ${PROJECT_BINARY_DIR}/fairlead-config-version.cmake
        DESTINATION ${cmake_dir})

# The prefix is found from where the .pc file lies, so that an installed tree can be moved.
file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" PC_PREFIX "${PC_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/fairlead.pc.in ${PROJECT_BINARY_DIR}/fairlead.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fairlead.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
