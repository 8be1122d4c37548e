# cmake -DOUT=FILE -DMODELS=FILES -P embed_models.cmake: writes the source that holds every one of them as text.
cmake_minimum_required(VERSION 3.22)

set(rows)
foreach(path IN LISTS MODELS)
  get_filename_component(name ${path} NAME)
  string(REGEX REPLACE "\\.yaml$" "" name ${name})
  file(READ ${path} text)
  string(APPEND rows "    {\"${name}\", R\"yaml(${text})yaml\"},\n")
endforeach()
list(LENGTH MODELS count)
file(
  CONFIGURE
  OUTPUT ${OUT}
  CONTENT
    "// Generated from configs/models.
#include <array>

#include \"config/model_catalogue.h\"

namespace qlp {
namespace {

constexpr std::array<CatalogueModel, @count@> kModels{{
@rows@}};

}  // namespace

std::span<const CatalogueModel> catalogue_models() { return kModels; }

}  // namespace qlp
"
  @ONLY)
