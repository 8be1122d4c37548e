# cmake -DOUT=FILE -DTEXT=FILE -DNAME=name -P embed_text.cmake: writes the source that holds the file as a text,
# qlp::app::NAME().
cmake_minimum_required(VERSION 3.22)

file(READ ${TEXT} text)
file(
  CONFIGURE
  OUTPUT ${OUT}
  CONTENT
    "// Generated.
#include \"app/embedded.h\"

namespace qlp::app {

std::string_view @NAME@() { return R\"embedded(@text@)embedded\"; }

}  // namespace qlp::app
"
  @ONLY)
