// SPDX-License-Identifier: Apache-2.0
// The table of commands. To add one: a file beside this one and a row here.
#include <array>

#include "app/cli/command.h"

namespace driftscope::cli {
namespace {

constexpr std::array kCommands{
    Command{"run", "Run one prompt under two configurations and capture both",
            "driftscope run --model samples/model --prompt \"In the beginning\" --a bf16-invariant "
            "--b bf16-shape-dependent --set-b neighbours=7 --steps 48 -o out/run.h5",
            &declare_run},
    Command{"score", "Logits at every position of a given sequence",
            "driftscope score --model samples/model --text \"And God said\" -o logits.npy",
            &declare_score},
    Command{"tokenize", "Token ids, pieces and byte offsets of a text",
            "driftscope tokenize --model samples/model --text \"In the beginning\"",
            &declare_tokenize},
    Command{"compare", "The verdict and the numbers of a capture, or of two",
            "driftscope compare out/demo.h5 --json", &declare_compare},
    Command{"inspect", "What is in a capture", "driftscope inspect out/demo.h5 --step 3",
            &declare_inspect},
    Command{"export", "Tables, pages and plots from a capture",
            "driftscope export out/demo.h5 --to html -o demo.html", &declare_export},
    Command{"vendor", "What saved responses of servers say, and where they part",
            "driftscope vendor a.json b.json", &declare_vendor},
    Command{"probe", "Ask live servers the same again and again, and say what makes answers part",
            "driftscope probe --endpoint http://localhost:8000/v1 --prompt \"Name a colour\" -o "
            "probe.jsonl",
            &declare_probe},
    Command{"import", "Answers or logits of other programs as a capture",
            "driftscope import a.npy b.npy -o pair.h5", &declare_import},
    Command{"recover", "Copy what is readable of a damaged capture into a fresh file",
            "driftscope recover broken.h5.part -o saved.h5", &declare_recover},
    Command{"knobs", "Every setting, its values, and which backend honours it",
            "driftscope knobs --json", &declare_knobs},
    Command{"metrics", "Every metric with its definition", "driftscope metrics", &declare_metrics},
    Command{"presets", "Named configurations", "driftscope presets bf16-invariant",
            &declare_presets},
    Command{"fingerprint", "What identifies this environment, for release gates",
            "driftscope fingerprint --model samples/model", &declare_fingerprint},
    Command{"doctor", "Checks this installation, and a model",
            "driftscope doctor --model samples/model", &declare_doctor},
    Command{"gui", "Open the window", "driftscope gui out/demo.h5", &declare_gui},
    Command{"completion", "Print a completion script for bash",
            "source <(driftscope completion bash)", &declare_completion},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace driftscope::cli
