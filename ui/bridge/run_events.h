// SPDX-License-Identifier: GPL-3.0-or-later
// What the bridge tells the window. Values travel between threads as queued signals.
#pragma once

#include <QMetaType>
#include <QString>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

// Counts runs and loads. A message of an older generation is stale and is dropped.
using Generation = quint64;

}  // namespace driftscope::ui

Q_DECLARE_METATYPE(driftscope::ComparisonPointer)
