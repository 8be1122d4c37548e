#include "base/text.h"

#include <array>

#include <doctest/doctest.h>

using namespace qlp;
using namespace qlp::literals;

TEST_CASE("base/text: sizes are read with their unit") {
  CHECK(parse_size("80GiB").value() == 80_GiB);
  CHECK(parse_size("80 GB").value() == Bytes{80'000'000'000});
  CHECK(parse_size("1.5GiB").value() == Bytes{1'610'612'736});
  CHECK(parse_size("0GiB").value() == 0_B);
  CHECK(parse_size("512B").value() == 512_B);
  CHECK(parse_size("40441MiB").value() == Bytes{40441ULL << 20});
  CHECK(parse_size("10kB").value() == 10000_B);
}

TEST_CASE("base/text: a size without a clear unit is an error that shows how to write it") {
  CHECK(parse_size("80").error() == "'80' has no unit: write 80GiB (2^30 bytes) or 80GB (10^9)");
  for (auto text : {"80G", "80Gi", "80g", "80gi"})
    CHECK(parse_size(text).error().find("80GiB (powers of 1024) or 80GB (powers of 1000)") != std::string::npos);
  for (auto text : {"", "GiB", "-1GiB", "80gib", "80GiBs", "80 G iB", "0x10GiB", "1e3GiB", "80.GiB", ".5GiB", "nan"})
    CHECK_FALSE(parse_size(text));
  CHECK_FALSE(parse_size("99999999TiB"));
  CHECK_FALSE(parse_size("99999999999999999999999GiB"));
  CHECK_FALSE(parse_size("9223372036854775808B"));
  CHECK(parse_size("9223372036854775807B"));
}

TEST_CASE("base/text: sizes for people and to the byte") {
  CHECK(format_size(Bytes{85'021'163'520}) == "79.18 GiB");
  CHECK(format_size(Bytes{512}) == "512 B");
  CHECK(format_size(Bytes{158'913'789'952}) == "148.0 GiB");
  CHECK(format_size(0_B) == "0 B");
  for (auto text : {"80GiB", "81151MiB", "85021163521B", "0B"}) CHECK(exact_size(parse_size(text).value()) == text);
}

TEST_CASE("base/text: rates are sizes per second") {
  CHECK(parse_rate("50GB/s").value() == Bytes{50'000'000'000});
  CHECK(parse_rate(" 1.5 GiB/s ").value() == Bytes{3ULL << 29});
  for (auto text : {"50GB/s", "48MiB/s", "1B/s"}) CHECK(exact_rate(parse_rate(text).value()) == text);
  for (auto text : {"50GB", "50/s", "400Gbit/s", "/s", "50 GB/h", ""}) CHECK_FALSE(parse_rate(text));
}

TEST_CASE("base/text: percentages go out as they came in") {
  CHECK(parse_percent("2%").value() == 0.02);
  CHECK(parse_percent("3.3 %").value() == 0.033);
  for (auto text : {"2%", "3.3%", "0%", "0.5%", "0.033%", "100%", "12.25%"})
    CHECK(exact_percent(parse_percent(text).value()) == text);
  for (auto text : {"2", "0.02", "%", "-2%", "2%%", "two%", ""}) CHECK_FALSE(parse_percent(text));
}

TEST_CASE("base/text: numbers") {
  CHECK(exact_number(0.05) == "0.05");
  CHECK(exact_number(16) == "16");
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(8030261248) == "8,030,261,248");
}

TEST_CASE("base/text: edit distance") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("seq_len", "seq_len") == 0);
  CHECK(edit_distance("seq_len", "Seq-Len") == 0);
  CHECK(edit_distance("sqe_len", "seq_len") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("base/text: did you mean") {
  const std::array<std::string_view, 4> words{"micro_batch_size", "seq_len", "optimizer", "H100 SXM5 80GB"};
  CHECK(closest("seqlen", words) == "seq_len");
  CHECK(closest("micro_batchsize", words) == "micro_batch_size");
  CHECK(closest("optimiser", words) == "optimizer");
  CHECK(closest("h100-sxm5", words) == "H100 SXM5 80GB");
  CHECK_FALSE(closest("learning_rate", words));
  CHECK_FALSE(closest("", words));
  CHECK_FALSE(closest(std::string(1000, 'x'), words));
}

TEST_CASE("base/text: no text is near to nothing") {
  const std::vector<std::string_view> words{""};
  CHECK_FALSE(closest("(", words));
}

TEST_CASE("base/text: what would steer a terminal, or is no text, is a question mark") {
  CHECK(harmless("caf\u00e9 \u4e2d") == "caf\u00e9 \u4e2d");
  CHECK(harmless("a\x1b[31m\x07\x7f\n") == "a?[31m???");
  CHECK(harmless("a\u009b31m") == "a?31m");  // CSI of C1
  CHECK(harmless("a\tb\nc", "\t\n") == "a\tb\nc");
  CHECK(harmless("\xe9\xff.\xc2") == "??.?");
}

TEST_CASE("base/text: words in a row") {
  const std::array<std::string_view, 2> words{"a", "b"};
  CHECK(join(words) == "a, b");
  CHECK(join({}) == "");
}
