// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// The files in web/ and the library that they draw with, compiled in (cmake/EmbedFiles.cmake).
namespace plimsoll::report {

extern const std::string_view kPageHtml;
extern const std::string_view kPageStyle;
extern const std::string_view kPageCode;
extern const std::string_view kPageLibrary;  ///< Empty if the build did not find it.

}  // namespace plimsoll::report
