// SPDX-License-Identifier: Apache-2.0
// Files that no writer of ours would make: each is refused with one line that names what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>

#include "tests/capture/sample_capture.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;
using testing::SampleShape;
using testing::ScratchFolder;

constexpr const char* kLogits = "/traces/a/logits";
constexpr const char* kTokens = "/traces/a/tokens";

void expect_ok(hid_t id) { ASSERT_GE(id, 0); }

// What goes wrong first: opening, or reading everything.
std::optional<Error> first_error(const std::filesystem::path& path) {
  const auto reader = CaptureReader::open(path);
  if (!reader) return reader.error();
  const auto verified = (*reader)->verify();
  if (!verified) return verified.error();
  return std::nullopt;
}

void expect_refused(const std::filesystem::path& path, const std::string& words) {
  const std::optional<Error> error = first_error(path);
  ASSERT_TRUE(error) << "accepted";
  EXPECT_EQ(error->kind, ErrorKind::malformed);
  EXPECT_THAT(error->message, HasSubstr(path.filename().string()));
  EXPECT_THAT(error->message, HasSubstr(words));
  EXPECT_EQ(error->message.find('\n'), std::string::npos);
}

hid_t make_dataset(hid_t file, const char* path, hid_t type, std::vector<hsize_t> extent,
                   std::vector<hsize_t> maximum, hid_t creation) {
  const hid_t space =
      H5Screate_simple(static_cast<int>(extent.size()), extent.data(), maximum.data());
  const hid_t dataset = H5Dcreate2(file, path, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  H5Sclose(space);
  return dataset;
}

// Puts another dataset in the place of one; chunked unless `creation` says otherwise.
void replace(hid_t file, const char* path, hid_t type, std::vector<hsize_t> extent,
             const std::function<void(hid_t)>& creation = {}) {
  ASSERT_GE(H5Ldelete(file, path, H5P_DEFAULT), 0);
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  std::vector<hsize_t> maximum = extent;
  if (creation) {
    creation(properties);
    if (H5Pget_layout(properties) == H5D_CHUNKED) maximum[0] = H5S_UNLIMITED;
  } else {
    std::vector<hsize_t> chunk = extent;
    chunk[0] = 1;
    ASSERT_GE(H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data()), 0);
    maximum[0] = H5S_UNLIMITED;
  }
  const hid_t dataset = make_dataset(file, path, type, extent, maximum, properties);
  expect_ok(dataset);
  H5Dclose(dataset);
  H5Pclose(properties);
}

void rewrite_int(hid_t file, const char* path, std::int64_t value) {
  const hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT);
  ASSERT_GE(H5Dwrite(dataset, H5T_STD_I64LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), 0);
  H5Dclose(dataset);
}

// An attribute of a group, made anew.
void replace_attribute(hid_t file, const char* group, const char* name, hid_t type,
                       const void* value) {
  const hid_t object = H5Gopen2(file, group, H5P_DEFAULT);
  H5Adelete(object, name);
  const hid_t scalar = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Acreate2(object, name, type, scalar, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(H5Awrite(attribute, type, value), 0);
  H5Aclose(attribute);
  H5Sclose(scalar);
  H5Gclose(object);
}

void replace_text_attribute(hid_t file, const char* group, const char* name,
                            const std::string& text) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, text.size());
  replace_attribute(file, group, name, type, text.data());
  H5Tclose(type);
}

class Malformed : public ::testing::Test {
 protected:
  // A sample capture, changed by `change`.
  std::filesystem::path make(const std::function<void(hid_t)>& change,
                             const CaptureOptions& options = {}) {
    const auto path = m_folder / "x.h5";
    EXPECT_TRUE(testing::write_sample(path, {}, options, TraceState::complete));
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, access);
    EXPECT_GE(file, 0);
    change(file);
    EXPECT_GE(H5Fclose(file), 0);
    H5Pclose(access);
    return path;
  }
  std::filesystem::path make_text(const std::string& bytes) {
    const auto path = m_folder / "t.h5";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  ScratchFolder m_folder;
};

TEST_F(Malformed, FilesThatAreNoHdf5) {
  expect_refused(make_text(""), "not an HDF5 file");
  expect_refused(make_text("hello, world"), "not an HDF5 file");
  expect_refused(make_text("\x89HDF\r\n\x1a\n"), "not an HDF5 file");
  expect_refused(make_text(std::string("\x89HDF\r\n\x1a\n\0", 9) + std::string(100, '\0')),
                 "superblock version 0");
  expect_refused(make_text("\x89HDF\r\n\x1a\n\x03" + std::string(100, '\x07')), "H5Fopen failed");
  expect_refused(m_folder / "missing.h5", "No such file");
  std::filesystem::create_directory(m_folder / "folder.h5");
  expect_refused(m_folder / "folder.h5", "not a regular file");
}

TEST_F(Malformed, AnotherFormatOrAVersionToCome) {
  expect_refused(make([](hid_t file) {
                   const std::int64_t version = 2;
                   replace_attribute(file, "/", "format_version", H5T_STD_I64LE, &version);
                 }),
                 "version 2 of the format; this program reads versions 1 to 1");
  expect_refused(make([](hid_t file) { H5Adelete(file, "format"); }),
                 "this HDF5 file is no capture");
  expect_refused(
      make([](hid_t file) { replace_text_attribute(file, "/", "format", "other-format"); }),
      "this HDF5 file is no capture");
  expect_refused(make([](hid_t file) { replace_text_attribute(file, "/", "state", "fine\n"); }),
                 "\"fine?\" is none of the states");
}

TEST_F(Malformed, SoftAndExternalLinksAtAnyComponent) {
  expect_refused(make([](hid_t file) {
                   H5Lmove(file, kLogits, file, "/elsewhere", H5P_DEFAULT, H5P_DEFAULT);
                   H5Lcreate_soft("/elsewhere", file, kLogits, H5P_DEFAULT, H5P_DEFAULT);
                 }),
                 "/traces/a/logits: a soft or external link");
  expect_refused(make([](hid_t file) {
                   H5Lmove(file, "/traces", file, "/elsewhere", H5P_DEFAULT, H5P_DEFAULT);
                   H5Lcreate_soft("/elsewhere", file, "/traces", H5P_DEFAULT, H5P_DEFAULT);
                 }),
                 "/traces: a soft or external link");
  expect_refused(make([](hid_t file) {
                   H5Ldelete(file, "/traces/a", H5P_DEFAULT);
                   H5Lcreate_soft("/traces/a", file, "/traces/a", H5P_DEFAULT, H5P_DEFAULT);
                 }),
                 "/traces/a: a soft or external link");
  expect_refused(make([](hid_t file) {
                   H5Ldelete(file, "/prompt", H5P_DEFAULT);
                   H5Lcreate_external("/etc/passwd", "/prompt", file, "/prompt", H5P_DEFAULT,
                                      H5P_DEFAULT);
                 }),
                 "/prompt: a soft or external link");
}

TEST_F(Malformed, DataThatLiesInOtherFiles) {
  const std::array<hsize_t, 2> extent{6, 37};
  expect_refused(make([&](hid_t file) {
                   replace(file, kLogits, H5T_IEEE_F32LE, {6, 37}, [&](hid_t properties) {
                     const hid_t space = H5Screate_simple(2, extent.data(), nullptr);
                     H5Pset_virtual(properties, space, "other.h5", "/x", space);
                     H5Sclose(space);
                   });
                 }),
                 "virtual layouts are refused");
  expect_refused(make([](hid_t file) {
                   replace(file, "/prompt/ids", H5T_STD_I32LE, {3}, [](hid_t properties) {
                     H5Pset_external(properties, "/etc/passwd", 0, 12);
                   });
                 }),
                 "stored in another file");
}

TEST_F(Malformed, ImpossibleSizes) {
  expect_refused(make([](hid_t file) {
                   rewrite_int(file, "/traces/a/steps_complete", std::int64_t{1} << 40);
                 }),
                 "1099511627776 steps do not fit into the file");
  expect_refused(make([](hid_t file) { rewrite_int(file, "/traces/a/steps_complete", -1); }),
                 "not a number of steps");
  expect_refused(make([](hid_t file) {
                   replace(file, "/token", H5T_STD_I32LE, {hsize_t{1} << 40}, [](hid_t) {});
                 }),
                 "do not fit into the file");
  // 7 steps are claimed, 6 are there.
  expect_refused(make([](hid_t file) { rewrite_int(file, "/traces/a/steps_complete", 7); }),
                 "steps_complete says 6 as an attribute and 7 as a dataset");
  expect_refused(make([](hid_t file) {
                   replace(file, kLogits, H5T_IEEE_F32LE, {6, 37}, [](hid_t properties) {
                     const std::array<hsize_t, 2> chunk{6, 37};
                     H5Pset_chunk(properties, 2, chunk.data());
                   });
                 }),
                 "step 0 fails its check value");  // never written
  expect_refused(make([](hid_t file) {
                   replace(file, kTokens, H5T_STD_I32LE, {6}, [](hid_t properties) {
                     const hsize_t chunk = hsize_t{1} << 26;
                     H5Pset_chunk(properties, 1, &chunk);
                   });
                 }),
                 "chunks of more than");
}

// An extent of 2^40 rows alone does no harm: only complete steps are read.
TEST_F(Malformed, AnExtentBeyondTheStepsIsNotRead) {
  const auto path = make([](hid_t file) {
    const hid_t dataset = H5Dopen2(file, kLogits, H5P_DEFAULT);
    const std::array<hsize_t, 2> extent{hsize_t{1} << 40, 37};
    ASSERT_GE(H5Dset_extent(dataset, extent.data()), 0);
    H5Dclose(dataset);
  });
  EXPECT_FALSE(first_error(path));
}

TEST_F(Malformed, WrongTypesShapesAndByteOrder) {
  const std::string type_rule = "not of the element type";
  expect_refused(make([](hid_t file) { replace(file, kTokens, H5T_IEEE_F32LE, {6}); }), type_rule);
  expect_refused(make([](hid_t file) { replace(file, kTokens, H5T_STD_I32BE, {6}); }), type_rule);
  expect_refused(make([](hid_t file) { replace(file, kTokens, H5T_STD_I64LE, {6}); }), type_rule);
  expect_refused(make([](hid_t file) {
                   replace(file, kLogits, H5T_IEEE_F64LE, {6, 37});
                 }),
                 type_rule);
  expect_refused(make([](hid_t file) {
                   replace(file, kLogits, H5T_IEEE_F32BE, {6, 37});
                 }),
                 type_rule);
  expect_refused(make([](hid_t file) { replace(file, kLogits, H5T_IEEE_F32LE, {6}); }),
                 "not chunked with 2 dimension(s)");
  expect_refused(make([](hid_t file) {
                   replace(file, kLogits, H5T_IEEE_F32LE, {6, 36});
                 }),
                 "rows of 36 where 37 are expected");
  expect_refused(make([](hid_t file) {
                   replace(file, kTokens, H5T_STD_I32LE, {6, 1});
                 }),
                 "not chunked with 1 dimension(s)");
  expect_refused(make([](hid_t file) {
                   replace(file, kTokens, H5T_STD_I32LE, {6}, [](hid_t) {});  // contiguous
                 }),
                 "not chunked");
  expect_refused(make([](hid_t file) {
                   H5Ldelete(file, kLogits, H5P_DEFAULT);
                   H5Gclose(H5Gcreate2(file, kLogits, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
                 }),
                 "/traces/a/logits: not a dataset");
  expect_refused(make([](hid_t file) { H5Ldelete(file, kLogits, H5P_DEFAULT); }),
                 "/traces/a/logits: missing");
}

TEST_F(Malformed, FiltersThatAreNotBuiltInOrNotForThisDataset) {
  expect_refused(make([](hid_t file) {
                   replace(file, kLogits, H5T_IEEE_F32LE, {6, 37}, [](hid_t properties) {
                     const std::array<hsize_t, 2> chunk{1, 37};
                     H5Pset_chunk(properties, 2, chunk.data());
                     H5Pset_nbit(properties);
                   });
                 }),
                 "filter 5 is not allowed here");
  expect_refused(make([](hid_t file) {
                   replace(file, kTokens, H5T_STD_I32LE, {6}, [](hid_t properties) {
                     const hsize_t chunk = 6;
                     H5Pset_chunk(properties, 1, &chunk);
                     H5Pset_deflate(properties, 1);
                   });
                 }),
                 "filter 1 is not allowed here");
}

TEST_F(Malformed, TextsOfUnboundedOrUnknownLength) {
  expect_refused(make([](hid_t file) {
                   const hid_t type = H5Tcopy(H5T_C_S1);
                   H5Tset_size(type, H5T_VARIABLE);
                   const char* text = "complete";
                   replace_attribute(file, "/", "state", type, &text);
                   H5Tclose(type);
                 }),
                 "not a fixed-length string");
  expect_refused(make([](hid_t file) {
                   replace_text_attribute(file, "/traces/a", "config", std::string(60001, ' '));
                 }),
                 "a text of 60001 bytes");
  expect_refused(make([](hid_t file) {
                   const hid_t type = H5Tcopy(H5T_C_S1);
                   H5Tset_size(type, (std::size_t{1} << 26) + 1);
                   H5Ldelete(file, "/envelope", H5P_DEFAULT);
                   const hid_t scalar = H5Screate(H5S_SCALAR);
                   H5Dclose(H5Dcreate2(file, "/envelope", type, scalar, H5P_DEFAULT, H5P_DEFAULT,
                                       H5P_DEFAULT));
                   H5Sclose(scalar);
                   H5Tclose(type);
                 }),
                 "a text of 67108865 bytes");
}

// Writes a text dataset with its check value, as the writer does.
void replace_text(hid_t file, const char* path, const std::string& text, std::uint32_t check) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, text.size());
  H5Ldelete(file, path, H5P_DEFAULT);
  const hid_t scalar = H5Screate(H5S_SCALAR);
  const hid_t dataset = H5Dcreate2(file, path, type, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), 0);
  const hid_t attribute =
      H5Acreate2(dataset, "crc32c", H5T_STD_I64LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
  const std::int64_t value = check;
  H5Awrite(attribute, H5T_STD_I64LE, &value);
  H5Aclose(attribute);
  H5Dclose(dataset);
  H5Sclose(scalar);
  H5Tclose(type);
}

TEST_F(Malformed, ColumnListsThatLeadElsewhere) {
  const std::string head = R"([{"name":"step"},{"name":"logits","width":37},)";
  for (const std::string& text : std::vector<std::string>{
           "{}", "[]", "[1,2]", std::string(100000, '['),
           head + R"({"layer":0,"operation":"../../b/logits","name":"x","width":8}])",
           head + R"({"layer":0,"operation":"","name":"x","width":8}])",
           head + R"({"layer":0,"operation":"q","name":"x","width":1099511627776}])",
           R"([{"name":"step"},{"name":"logits","width":38}])",
           R"([{"name":"step"},{"name":"logits_topk","width":-1}])"}) {
    std::uint32_t check = 0;
    {
      // CRC-32C bit by bit, for the test's own file.
      check = ~0U;
      for (const char c : text) {
        check ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) {
          check = check >> 1U ^ ((check & 1U) != 0 ? 0x82F63B78U : 0U);
        }
      }
      check = ~check;
    }
    SCOPED_TRACE(text.substr(0, 80));
    expect_refused(
        make([&](hid_t file) { replace_text(file, "/traces/a/crc32c_columns", text, check); }),
        "not the list that FORMAT.md prescribes");
  }
}

TEST_F(Malformed, AChunkThatInflatesToAThousandTimesItsSize) {
  const std::string zeros(std::size_t{64} << 20, '\0');
  uLongf packed_size = compressBound(static_cast<uLong>(zeros.size()));
  std::vector<Bytef> packed(packed_size);
  ASSERT_EQ(compress2(packed.data(), &packed_size, reinterpret_cast<const Bytef*>(zeros.data()),
                      static_cast<uLong>(zeros.size()), 9),
            Z_OK);
  ASSERT_GT(zeros.size() / packed_size, 900U);
  // Cut so that the chunk is no larger than one of this shape may be: it still claims 3 MB.
  for (const std::size_t size : {std::size_t{4000}, static_cast<std::size_t>(packed_size)}) {
    const auto path = make(
        [&](hid_t file) {
          const hid_t dataset = H5Dopen2(file, kLogits, H5P_DEFAULT);
          const std::array<hsize_t, 2> offset{2, 0};
          ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset.data(), size, packed.data()), 0);
          H5Dclose(dataset);
        },
        {.deflate = 1});
    expect_refused(path, size == 4000 ? "does not decompress to its size" : "not as large as");
  }
}

// The writer refuses what the reader would.
TEST_F(Malformed, HeadersThatTheReaderWouldRefuseAreNotWritten) {
  const auto expect_not_written = [this](const std::function<void(CaptureHeader&)>& change) {
    CaptureHeader header = testing::sample_header({});
    change(header);
    const auto writer = CaptureWriter::create(m_folder / "n.h5", header, {});
    ASSERT_FALSE(writer);
    EXPECT_EQ(writer.error().kind, ErrorKind::output);
    EXPECT_FALSE(std::filesystem::exists(m_folder / "n.h5.part"));
  };
  expect_not_written([](CaptureHeader& header) { header.vocabulary = 0; });
  expect_not_written([](CaptureHeader& header) { header.vocabulary = std::int64_t{1} << 25; });
  expect_not_written([](CaptureHeader& header) { header.taps[0].operation = "../x"; });
  expect_not_written([](CaptureHeader& header) { header.taps[0].operation.clear(); });
  expect_not_written([](CaptureHeader& header) { header.taps[0].width = 0; });
  expect_not_written([](CaptureHeader& header) { header.taps[0].layer = -2; });
  expect_not_written(
      [](CaptureHeader& header) { header.lanes[0].config_json = std::string(70000, ' '); });
}

TEST_F(Malformed, RowsReadableBesideADamagedOne) {
  const auto path = make(
      [&](hid_t file) {
        const hid_t dataset = H5Dopen2(file, kLogits, H5P_DEFAULT);
        const std::array<hsize_t, 2> offset{2, 0};
        ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset.data(), 4, "xyz"), 0);
        H5Dclose(dataset);
      },
      {.deflate = 1});
  const auto reader = CaptureReader::open(path);
  ASSERT_TRUE(reader);
  EXPECT_TRUE((*reader)->logits(Lane::a, 1));
  EXPECT_FALSE((*reader)->logits(Lane::a, 2));
  EXPECT_TRUE((*reader)->logits(Lane::a, 3));
  // Recovery keeps the steps before the damage, and the other lanes whole.
  const auto saved = recover_capture(path, m_folder / "saved.h5");
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(*saved, 2 + 3 * 6);
  const auto fresh = CaptureReader::open(m_folder / "saved.h5");
  ASSERT_TRUE(fresh);
  EXPECT_EQ((*fresh)->state(), TraceState::partial);
  EXPECT_EQ((*fresh)->lane(Lane::a)->steps_complete, 2);
  EXPECT_EQ((*fresh)->lane(Lane::b)->steps_complete, 6);
  EXPECT_TRUE((*fresh)->verify());
}

TEST_F(Malformed, StepsOutsideTheLaneAreWrongUse) {
  const auto reader = CaptureReader::open(make([](hid_t) {}));
  ASSERT_TRUE(reader);
  for (const std::int64_t step : {std::int64_t{-1}, std::int64_t{6}, std::int64_t{1} << 40}) {
    const auto row = (*reader)->logits(Lane::a, step);
    ASSERT_FALSE(row);
    EXPECT_EQ(row.error().kind, ErrorKind::usage);
  }
  const auto lane = (*reader)->logits(Lane::reference, 0);
  ASSERT_FALSE(lane);
  EXPECT_EQ(lane.error().kind, ErrorKind::inconclusive);
}

}  // namespace
}  // namespace driftscope
