// cmake/keeper.cmake builds the keeper first and defines FAIRLEAD_KEEPER_FILE as its path.
#include "process/keeper_image.hpp"

__asm__(
    ".pushsection .rodata.fairlead_keeper,\"a\"\n"
    ".balign 16\n"
    ".globl fairlead_keeper_begin\n"
    ".hidden fairlead_keeper_begin\n"
    "fairlead_keeper_begin:\n"
    ".incbin \"" FAIRLEAD_KEEPER_FILE
    "\"\n"
    ".globl fairlead_keeper_end\n"
    ".hidden fairlead_keeper_end\n"
    "fairlead_keeper_end:\n"
    ".popsection\n");

extern "C" const char fairlead_keeper_begin[];
extern "C" const char fairlead_keeper_end[];

namespace fairlead::process {

std::string_view keeper_image() noexcept {
  return {fairlead_keeper_begin, fairlead_keeper_end};
}

}  // namespace fairlead::process
