// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plimsoll/report/subject.h"

namespace plimsoll::report {

/// Draws memory over time and the address map as one SVG, for papers: on white, with patterns
/// beside colours. Where there are more rectangles than `most_rectangles`, they are drawn in cells
/// of half a unit of the drawing, each with what takes most of it, and the picture says so.
std::string RenderSvg(const Subject& subject, std::size_t most_rectangles = 4000);

}  // namespace plimsoll::report
