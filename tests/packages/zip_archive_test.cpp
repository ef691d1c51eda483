#include "packages/zip_archive.hpp"

#include <gtest/gtest.h>

#include "packages/zip_writer.hpp"

namespace fairlead::packages {
namespace {

using test::make_zip;
using test::message_of;
using test::ZipEndNumbers;
using test::ZipFile;

std::string open_problem(const std::string& bytes, const ZipLimits& limits = ZipLimits()) {
  return message_of(ZipArchive::open(bytes, 0, limits));
}

std::string problem_of(const ZipFile& file) {
  return open_problem(make_zip({file}));
}

// Opens the archive and reads all its files.
std::string read_problem(const std::string& bytes) {
  const Result<ZipArchive> archive = ZipArchive::open(bytes);
  if (!archive) return archive.error().message();
  for (const ZipEntry& entry : archive->entries()) {
    const Result<std::string> content = archive->read(entry, 100u << 20);
    if (!content) return content.error().message();
  }
  return "";
}

TEST(ZipArchive, ReadsStoredAndDeflatedFilesAndKeepsWhatIsExecutable) {
  ZipFile stored("bin/run", "#!/bin/sh\n", 0100755);
  stored.deflate = false;
  const std::string bytes =
      make_zip({ZipFile("a.txt", std::string(10'000, 'a')), ZipFile("bin/", "", 0040755), stored});
  const Result<ZipArchive> archive = ZipArchive::open(bytes);
  ASSERT_TRUE(archive) << archive.error().message();
  ASSERT_EQ(archive->entries().size(), 3u);
  EXPECT_EQ(archive->read(archive->entries()[0], 20'000), std::string(10'000, 'a'));
  EXPECT_FALSE(archive->entries()[0].is_executable);
  EXPECT_TRUE(archive->entries()[1].is_directory);
  EXPECT_EQ(archive->entries()[1].name, "bin");
  EXPECT_EQ(archive->read(archive->entries()[2], 20'000), "#!/bin/sh\n");
  EXPECT_TRUE(archive->entries()[2].is_executable);
  EXPECT_EQ(archive->find("bin/run"), &archive->entries()[2]);
  EXPECT_EQ(archive->find("bin/walk"), nullptr);
}

TEST(ZipArchive, RejectsPathsThatLeaveTheDirectory) {
  for (const std::string name : {"../a", "a/../../b", "a/..", "..", ".", "a/./b", "/etc/passwd", "a//b",
                                 "C:/x", "C:x", "a\\..\\b", "a\nb", "\xff\xfe"}) {
    EXPECT_NE(problem_of(ZipFile(name, "x")), "") << name;
  }
  EXPECT_NE(problem_of(ZipFile(std::string("a\0b", 3), "x")), "");
  EXPECT_NE(problem_of(ZipFile(std::string(300, 'a'), "x")), "");
  EXPECT_NE(problem_of(ZipFile("", "x")), "");
  EXPECT_EQ(problem_of(ZipFile("a..b/..c/ä", "x")), "");
}

TEST(ZipArchive, RejectsLinksAndDevices) {
  EXPECT_EQ(problem_of(ZipFile("link", "/etc/passwd", 0120777)), "the entry `link` is a link");
  EXPECT_EQ(problem_of(ZipFile("fifo", "", 0010644)), "the entry `fifo` is neither a file nor a directory");
  EXPECT_EQ(problem_of(ZipFile("d", "", 0040755)), "the entry `d` is both a file and a directory");
  EXPECT_EQ(problem_of(ZipFile("d/", "x", 0040755)), "the entry `d/` is a directory with content");
}

TEST(ZipArchive, RejectsNamesThatCollide) {
  const auto pair = [](const char* first, const char* second) {
    return open_problem(make_zip({ZipFile(first, "1"), ZipFile(second, "2")}));
  };
  EXPECT_EQ(pair("a", "a"), "the entry `a` has the path of another entry, at least if case is ignored");
  EXPECT_EQ(pair("Read.me", "README/../x").substr(0, 9), "the entry");
  EXPECT_EQ(pair("dir/A", "DIR/a"),
            "the entry `DIR/a` has the path of another entry, at least if case is ignored");
  EXPECT_EQ(pair("a", "a/b"), "the entry `a/b` is in a directory that is also a file");
  EXPECT_EQ(pair("a/b", "A"), "the entry `a/b` is in a directory that is also a file");
  EXPECT_EQ(pair("a", "ab"), "");
}

TEST(ZipArchive, RejectsEncryptedAndUnknownEntries) {
  ZipFile encrypted("a", "x");
  encrypted.flags = 1;
  EXPECT_EQ(problem_of(encrypted), "the entry `a` is encrypted");
  ZipFile unknown("a", "x");
  unknown.method = 12;
  EXPECT_EQ(problem_of(unknown), "the entry `a` is compressed by the unsupported method 12");
}

TEST(ZipArchive, RejectsEntriesThatOverlap) {
  ZipFile second("b", "x");
  second.header_name = "a";
  second.header_offset = 0;
  EXPECT_NE(open_problem(make_zip({ZipFile("a", "x"), second})), "");
  // The same data twice, with the same header: a quoted bomb.
  ZipFile inner("inner", "0123456789");
  inner.deflate = false;
  const std::string nested = make_zip({inner});
  ZipFile outer("outer", nested.substr(0, 45));  // contains the header and data of `inner`
  outer.deflate = false;
  inner.header_offset = 30 + 5;
  EXPECT_EQ(open_problem(make_zip({outer, inner})), "the entry `inner` overlaps another entry");
}

TEST(ZipArchive, RejectsHeadersThatContradictTheDirectory) {
  ZipFile renamed("a", "x");
  renamed.header_name = "b";
  EXPECT_EQ(problem_of(renamed), "the entry `a` has a header that contradicts the directory");
  ZipFile moved("a", "x");
  moved.header_offset = 1;
  EXPECT_EQ(problem_of(moved), "the entry `a` has no header where the directory says");
  moved.header_offset = 0xfffffff0;
  EXPECT_EQ(problem_of(moved), "the entry `a` has no header where the directory says");
}

TEST(ZipArchive, RejectsDirectoriesThatLie) {
  const std::vector<ZipFile> files = {ZipFile("a", "x"), ZipFile("b", "y")};
  const auto changed = [&](const std::function<void(ZipEndNumbers&)>& change) {
    return open_problem(make_zip(files, change));
  };
  EXPECT_NE(changed([](ZipEndNumbers& end) { end.entries = 1; }), "");
  EXPECT_NE(changed([](ZipEndNumbers& end) { end.entries = 3; }), "");
  EXPECT_NE(changed([](ZipEndNumbers& end) { end.entries = 0xffff; }), "");
  EXPECT_NE(changed([](ZipEndNumbers& end) { end.directory_offset -= 1; }), "");
  EXPECT_NE(changed([](ZipEndNumbers& end) { end.directory_size += 1; }), "");
  EXPECT_NE(changed([](ZipEndNumbers& end) { end.directory_offset = 0xffffffff; }), "");
  EXPECT_EQ(changed([](ZipEndNumbers& end) { end.comment = "made by a packer"; }), "");
  EXPECT_NE(changed([&](ZipEndNumbers& end) { end.comment = make_zip({ZipFile("c", "z")}); }), "");
}

TEST(ZipArchive, RejectsTruncatedArchivesAtEveryByte) {
  const std::string bytes = make_zip({ZipFile("a", "some text"), ZipFile("b/c", "more text")});
  EXPECT_EQ(read_problem(bytes), "");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(read_problem(bytes.substr(0, size)), "") << size;
  for (std::size_t begin = 1; begin < bytes.size(); ++begin)
    EXPECT_NE(read_problem(bytes.substr(begin)), "") << begin;
  EXPECT_NE(read_problem(bytes + "x"), "");
}

TEST(ZipArchive, RejectsDataWithAnotherSizeOrChecksum) {
  ZipFile file("a", "some text");
  file.crc = 1;
  EXPECT_EQ(read_problem(make_zip({file})), "the entry `a` is damaged");
  file = ZipFile("a", "some text");
  file.size = 5;
  EXPECT_EQ(read_problem(make_zip({file})), "the entry `a` is damaged");
  file.size = 5'000;
  EXPECT_EQ(read_problem(make_zip({file})), "the entry `a` is damaged");
}

TEST(ZipArchive, RejectsBombs) {
  const std::string bomb = make_zip({ZipFile("zeros", std::string(20u << 20, '\0'))});
  EXPECT_EQ(open_problem(bomb), "is unpacked to a multiple of its size of more than max_bundle_ratio (200)");
  ZipLimits limits;
  limits.max_bundle_unpacked_bytes = 1'000;
  EXPECT_EQ(open_problem(make_zip({ZipFile("a", std::string(600, 'x')), ZipFile("b", std::string(600, 'x'))}),
                         limits),
            "is unpacked to more than max_bundle_unpacked_bytes (1000)");
  limits.max_bundle_bytes = 10;
  EXPECT_EQ(open_problem(bomb, limits), "has more than max_bundle_bytes (10)");
  // Claims to be small: unpacking stops at the claimed size.
  ZipFile liar("zeros", std::string(20u << 20, '\0'));
  liar.size = 100;
  const std::string bytes = make_zip({liar});
  const Result<ZipArchive> archive = ZipArchive::open(bytes);
  ASSERT_TRUE(archive);
  std::size_t unpacked = 0;
  const Result<void> result =
      archive->unpack(archive->entries()[0], [&](std::string_view piece) -> Result<void> {
        unpacked += piece.size();
        return {};
      });
  EXPECT_FALSE(result);
  EXPECT_LE(unpacked, 100u);
}

TEST(ZipArchive, RejectsTooManyEntries) {
  std::vector<ZipFile> files;
  for (int i = 0; i < 51'000; ++i) {
    ZipFile& file = files.emplace_back(std::to_string(i), "");
    file.deflate = false;
  }
  EXPECT_EQ(open_problem(make_zip(files)), "has more than max_bundle_entries (50000)");
  // 70,000 entries do not fit into the number of the archive: it says 4,464.
  for (int i = 51'000; i < 70'000; ++i) files.emplace_back(std::to_string(i), "").deflate = false;
  EXPECT_EQ(open_problem(make_zip(files)), "is damaged: its directory has more entries than it claims");
}

}  // namespace
}  // namespace fairlead::packages
