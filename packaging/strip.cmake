# Run by CPack over the staged tree. It strips programs itself; debug information in static libraries is left to us.
cmake_policy(VERSION 3.25)
file(GLOB_RECURSE archives ${CPACK_TEMPORARY_DIRECTORY}/*.a)
foreach(archive IN LISTS archives)
  execute_process(COMMAND strip --strip-debug ${archive} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
