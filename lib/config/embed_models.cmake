# cmake -DOUT=FILE -DMODELS=FOLDER -P embed_models.cmake: writes the source that holds every FOLDER/*.yaml as text.
cmake_minimum_required(VERSION 3.22)

file(GLOB files ${MODELS}/*.yaml)
list(SORT files)
set(rows)
foreach(path IN LISTS files)
  get_filename_component(name ${path} NAME)
  string(REGEX REPLACE "\\.yaml$" "" name ${name})
  file(READ ${path} text)
  string(APPEND rows "    {\"${name}\", R\"yaml(${text})yaml\"},\n")
endforeach()
list(LENGTH files count)
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
