# Run by CPack on the staging tree. CPack strips programs, but not static libraries: this script removes their debug information.
cmake_policy(VERSION 3.25)
file(GLOB_RECURSE archives ${CPACK_TEMPORARY_DIRECTORY}/*.a)
foreach(archive IN LISTS archives)
  execute_process(COMMAND strip --strip-debug ${archive} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
