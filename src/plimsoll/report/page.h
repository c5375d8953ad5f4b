// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/curve_drawing.h"
#include "plimsoll/report/subject.h"

namespace plimsoll::report {

/// Whether this build has what a page is drawn with: a library that is found at build time
/// (docs/dependencies.md).
bool HasPage();

/// Writes a report as one HTML file that needs nothing else: no network, no other file. One
/// subject, or two to be compared. Names in it may be any bytes; they show as text. REQUIRES:
/// HasPage(), and one or two subjects, whose plans are valid.
std::string RenderPage(const std::vector<const Subject*>& subjects,
                       const std::optional<CurveChart>& curve);

/// What the page carries of a subject: a line of JSON with the names and the sizes of the columns,
/// then the columns (columns.h). Not compressed.
std::string PackSubject(const Subject& subject);

}  // namespace plimsoll::report
