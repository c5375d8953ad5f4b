# SPDX-License-Identifier: Apache-2.0
# Writes a source file with the contents of others as constants. Run by CMake as a script:
#
#   cmake -DOUTPUT=x.cc -DHEADER=plimsoll/... -DNAMESPACE=... -DPARTS="kName=a.js|b.js;kOther=c.css"
#         -P EmbedFiles.cmake
#
# Files of one constant are put behind each other. A constant without files is empty. Literals are
# cut into pieces, as compilers need not take long ones.
set(text "// SPDX-License-Identifier: Apache-2.0\n// Generated: do not edit.\n#include \"${HEADER}\"\n\n")
string(APPEND text "namespace ${NAMESPACE} {\n\n")
foreach(part IN LISTS PARTS)
  string(REGEX MATCH "^([A-Za-z]+)=(.*)$" matched "${part}")
  set(name ${CMAKE_MATCH_1})
  string(REPLACE "|" ";" files "${CMAKE_MATCH_2}")
  set(content "")
  foreach(file IN LISTS files)
    file(READ "${file}" one)
    string(APPEND content "${one}\n")
  endforeach()
  string(LENGTH "${content}" length)
  string(APPEND text "const std::string_view ${name} =\n")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${content}" ${at} 12000 piece)
    string(APPEND text "    R\"embedded(${piece})embedded\"\n")
    math(EXPR at "${at} + 12000")
  endwhile()
  string(APPEND text "    \"\";\n\n")
endforeach()
string(APPEND text "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${text}")
