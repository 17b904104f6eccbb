// SPDX-License-Identifier: GPL-3.0-or-later
// Where the headless program is.
#pragma once

#include <QString>
#include <QStringList>

namespace driftscope::ui {

// $DRIFTSCOPE_CLI; else beside this program; else ../cli of the build tree; else in PATH.
// Empty if there is none.
[[nodiscard]] QString locate_program();
// A capture that comes with the program, beside the installation or in the source tree; empty if
// there is none.
[[nodiscard]] QString locate_sample();
// What to tell a person when it is empty.
[[nodiscard]] QString program_missing_text();

}  // namespace driftscope::ui
